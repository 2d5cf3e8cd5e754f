//! Generates the pages of the names that kernels can use, `docs/reference/names/`: one page per subject, one row per
//! name.

use std::fmt::Write;

use weft_compiler::intrinsics::{Arg, Intrinsic, Lowering, Returns, Signature, rows};

use crate::generated::{NOTE, check};

/// A page: its file name, title, introduction, and sections.
struct Page {
    file: &'static str,
    title: &'static str,
    says: &'static str,
    /// The sections: a heading (empty on a page of one section), and the paths of the rows. A path that ends with `.*`
    /// matches all names of a module.
    parts: &'static [(&'static str, &'static [&'static str])],
}

const PAGES: &[Page] = &[
    Page {
        file: "threads",
        title: "Threads, blocks and the grid",
        says: "Where a thread is, and how large its block and the grid are.",
        parts: &[(
            "",
            &[
                "weft.cuda.threadIdx.*",
                "weft.cuda.blockIdx.*",
                "weft.cuda.blockDim.*",
                "weft.cuda.gridDim.*",
                "weft.cuda.laneid",
                "weft.cuda.warpsize",
                "weft.cuda.grid",
                "weft.cuda.gridsize",
            ],
        )],
    },
    Page {
        file: "barriers",
        title: "Barriers and memory fences",
        says: "How the threads of a block or a warp wait for each other, and how a thread orders its memory accesses.",
        parts: &[(
            "",
            &[
                "weft.cuda.syncthreads",
                "weft.cuda.syncthreads_count",
                "weft.cuda.syncthreads_and",
                "weft.cuda.syncthreads_or",
                "weft.cuda.syncwarp",
                "weft.cuda.threadfence",
                "weft.cuda.threadfence_block",
                "weft.cuda.threadfence_system",
            ],
        )],
    },
    Page {
        file: "memory",
        title: "Arrays, pointers and cache operators",
        says: "Shared, local and constant arrays, arrays at a pointer, and loads and stores with a cache operator.",
        parts: &[(
            "",
            &[
                "weft.cuda.shared.*",
                "weft.cuda.local.*",
                "weft.cuda.const.*",
                "weft.carray",
                "weft.farray",
                "cffi.FFI.*",
                "weft.cuda.ldca",
                "weft.cuda.ldcg",
                "weft.cuda.ldcs",
                "weft.cuda.ldlu",
                "weft.cuda.ldcv",
                "weft.cuda.stcg",
                "weft.cuda.stcs",
                "weft.cuda.stwb",
                "weft.cuda.stwt",
                "weft.cuda.copy_async",
                "weft.cuda.copy_commit",
                "weft.cuda.copy_wait",
                "weft.cuda.barrier",
                "weft.cuda.Barrier.*",
            ],
        )],
    },
    Page {
        file: "atomics",
        title: "Atomic operations",
        says: "Operations that read and write an element of an array in one step, which no other thread can interrupt.",
        parts: &[("", &["weft.cuda.atomic.*"])],
    },
    Page {
        file: "warps",
        title: "Warps: shuffles, votes and reductions",
        says: "How the 32 threads of a warp exchange values without memory. The first argument is a mask: bit n stands for lane n.",
        parts: &[(
            "",
            &[
                "weft.cuda.shfl_sync",
                "weft.cuda.shfl_up_sync",
                "weft.cuda.shfl_down_sync",
                "weft.cuda.shfl_xor_sync",
                "weft.cuda.all_sync",
                "weft.cuda.any_sync",
                "weft.cuda.eq_sync",
                "weft.cuda.ballot_sync",
                "weft.cuda.match_any_sync",
                "weft.cuda.match_all_sync",
                "weft.cuda.activemask",
                "weft.cuda.lanemask_lt",
                "weft.cuda.lanemask_le",
                "weft.cuda.lanemask_eq",
                "weft.cuda.lanemask_ge",
                "weft.cuda.lanemask_gt",
                "weft.cuda.elect_sync",
                "weft.cuda.reduce_add_sync",
                "weft.cuda.reduce_min_sync",
                "weft.cuda.reduce_max_sync",
                "weft.cuda.reduce_and_sync",
                "weft.cuda.reduce_or_sync",
                "weft.cuda.reduce_xor_sync",
            ],
        )],
    },
    Page {
        file: "matrix-tiles",
        title: "Matrix tiles: cuda.mma",
        says: "Products of small matrices that a warp or a warpgroup computes on tensor cores. All its lanes must make each call.",
        parts: &[
            ("", &["weft.cuda.mma.*", "weft.cuda.set_registers"]),
            ("Methods of a tile", &["weft.cuda.mma.Tile.*"]),
        ],
    },
    Page {
        file: "cooperative-groups",
        title: "Cooperative groups: cuda.cg",
        says: "Groups of threads as values: the grid, a block, tiles of a block, and the active lanes of a warp.",
        parts: &[
            ("Groups, and functions of a group", &["weft.cuda.cg.*"]),
            ("The grid", &["weft.cuda.cg.GridGroup.*"]),
            ("A block", &["weft.cuda.cg.ThreadBlock.*"]),
            ("A tile", &["weft.cuda.cg.ThreadBlockTile.*"]),
            ("Active lanes", &["weft.cuda.cg.CoalescedGroup.*"]),
        ],
    },
    Page {
        file: "clusters",
        title: "Clusters: cuda.cluster",
        says: "Thread block clusters: blocks that run at the same time, synchronize, and access each other's shared memory.",
        parts: &[("", &["weft.cuda.cluster.*"])],
    },
    Page {
        file: "collectives",
        title: "Collectives: cuda.coop",
        says: "Reductions, scans, sorts and exchanges of a block or a warp. All threads of the block, or all lanes of the warp, \
               must make the call.",
        parts: &[("Of a block", &["weft.cuda.coop.block.*"]), ("Of a warp", &["weft.cuda.coop.warp.*"])],
    },
    Page {
        file: "random",
        title: "Random numbers: cuda.random",
        says: "Random numbers in kernels. `philox` functions need no state; `xoroshiro128p` functions use states that the host makes.",
        parts: &[("", &["weft.cuda.random.*"])],
    },
    Page {
        file: "bits",
        title: "Bits and arithmetic",
        says: "Operations on the bits of integers, and arithmetic that Python has no operator for.",
        parts: &[(
            "",
            &[
                "weft.cuda.popc",
                "weft.cuda.clz",
                "weft.cuda.ffs",
                "weft.cuda.brev",
                "weft.cuda.byte_perm",
                "weft.cuda.funnelshift_l",
                "weft.cuda.funnelshift_lc",
                "weft.cuda.funnelshift_r",
                "weft.cuda.funnelshift_rc",
                "weft.cuda.fma",
                "weft.cuda.cbrt",
                "weft.cuda.rsqrt",
                "weft.cuda.selp",
            ],
        )],
    },
    Page {
        file: "other",
        title: "Clocks, inline PTX, unrolled loops and constants of derivatives",
        says: "Clocks, a pause, PTX instructions in a kernel, loops over tuples of several types, and values that are \
            constants in derivatives.",
        parts: &[(
            "",
            &[
                "weft.cuda.clock",
                "weft.cuda.clock64",
                "weft.cuda.globaltimer",
                "weft.cuda.nanosleep",
                "weft.cuda.inline_ptx",
                "weft.cuda.literal_unroll",
                "weft.cuda.stop_gradient",
            ],
        )],
    },
    Page {
        file: "float16",
        title: "Half precision: cuda.fp16",
        says: "Functions of float16 numbers. Python's operators work on them, too.",
        parts: &[("", &["weft.cuda.fp16.*"])],
    },
    Page {
        file: "bfloat16",
        title: "Half precision: cuda.bf16",
        says: "Functions of bfloat16 numbers. Python's operators work on them, too.",
        parts: &[("", &["weft.cuda.bf16.*"])],
    },
    Page {
        file: "float8",
        title: "Floats of 8 bits: cuda.fp8",
        says: "Conversions between floats and the bits of floats of 8 bits, which arrays of uint8 store.",
        parts: &[("", &["weft.cuda.fp8.*"])],
    },
    Page {
        file: "libdevice",
        title: "cuda.libdevice",
        says: "The functions of NVIDIA's math library under their own names. They work on every target: where the library is not \
               found, and on the CPU, weft's own implementation computes them.",
        parts: &[("", &["weft.cuda.libdevice.*"])],
    },
    Page {
        file: "math",
        title: "Python's math and cmath",
        says: "Functions and constants of the modules `math` and `cmath`.",
        parts: &[("math", &["math.*"]), ("cmath", &["cmath.*"])],
    },
    Page {
        file: "numpy",
        title: "NumPy",
        says: "NumPy's functions that kernels can call, for numbers and for whole arrays.",
        parts: &[
            ("Functions", &["numpy.*"]),
            ("Methods of arrays and numbers", &["numpy.ndarray.*", "numpy.generic.*"]),
        ],
    },
    Page {
        file: "python",
        title: "Python's built-in functions and operator",
        says: "Built-in functions, and functions of the module `operator`.",
        parts: &[
            ("Built-in functions", &["builtins.*"]),
            ("Methods of tuples and strings", &["builtins.tuple.*", "builtins.str.*"]),
            ("operator", &["operator.*"]),
        ],
    },
];

/// The maximum number of names of a page in the index.
const SHOWN: usize = 24;

#[test]
fn the_pages_of_names_are_fresh() {
    let mut index = format!(
        "{NOTE}# Names that kernels can use\n\nThe functions and values that a kernel can use, by subject. Each page says what a name does, which \
         types it takes and returns, and which PTX instruction it becomes. `float32[:]` stands for an array of any number of \
         dimensions. Arguments of other types are converted as Numba converts them. [The language](../language.md) explains how \
         these names are used together.\n\n| subject | names |\n|---|---|\n"
    );
    for row in rows() {
        let has = PAGES.iter().flat_map(|page| page.parts).filter(|(_, paths)| matches(paths, row.path)).count();
        assert_eq!(has, 1, "{}: a name is on one page, by a path of PAGES", row.path);
    }
    for Page { file, title, says, parts } in PAGES {
        let mut page = format!("{NOTE}# {title}\n\n{says} [All names](../intrinsics.md)\n");
        let mut names = Vec::new();
        for (heading, paths) in *parts {
            if !heading.is_empty() {
                let _ = write!(page, "\n## {heading}\n");
            }
            page.push_str("\n| name | what it does |\n|---|---|\n");
            for row in rows().filter(|row| matches(paths, row.path)) {
                let name = name(row);
                let _ = writeln!(page, "| `{name}` | {} |", describe(row).replace('|', "\\|"));
                names.push(format!("`{name}`"));
            }
        }
        check(&format!("docs/reference/names/{file}.md"), &page);
        let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = names.len().checked_sub(SHOWN).filter(|&n| n > 0).map(|n| format!(" and {n} more"));
        let _ = writeln!(index, "| [{title}](names/{file}.md) | {shown}{} |", more.unwrap_or_default());
    }
    check("docs/reference/intrinsics.md", &index);
}

/// Whether one of the paths matches a row or its module.
fn matches(paths: &[&str], row: &str) -> bool {
    let module = row.rsplit_once('.').map_or("", |(module, _)| module);
    paths.iter().any(|path| path.strip_suffix(".*").map_or(*path == row, |all| all == module))
}

/// A row's name as kernels write it.
fn name(row: &Intrinsic) -> &str {
    let prefix = if row.path.starts_with("weft.cuda.") { "weft." } else { "builtins." };
    row.path.strip_prefix(prefix).unwrap_or(row.path)
}

/// The description, types and PTX of a row, one line each.
fn describe(row: &'static Intrinsic) -> String {
    let ptx: Vec<_> = row.mnemonics().iter().map(|name| format!("`{}`", name.trim_end_matches('.'))).collect();
    let mut lines = vec![row.doc.to_owned()];
    lines.extend(Some(signatures(row)).filter(|types| !types.is_empty()).map(|types| format!("Types: {types}")));
    lines.extend((!ptx.is_empty()).then(|| format!("PTX: {}", ptx.join(", "))));
    lines.join("<br>")
}

/// The overloads of a row: `(float32) → float32`.
fn signatures(row: &Intrinsic) -> String {
    if let (Lowering::Register(_), [Signature { returns: Returns::Scalar(scalar), .. }]) =
        (row.lowering, row.signatures)
    {
        return scalar.name().to_owned();
    }
    // Overloads that differ in one type share a line: `(T, T) → T for T = int8, uint8`.
    let mut lines: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for signature in row.signatures {
        let own = shown(signature);
        let mut names = signature.args.iter().filter_map(|arg| match arg {
            Arg::Scalar(scalar) => Some(scalar.name().to_owned()),
            Arg::Complex(complex) => Some(complex.to_string()),
            Arg::Array(number) => Some(number.name().to_owned()),
            Arg::DType(scalar) => Some(scalar.name().to_owned()),
            Arg::Records(_) | Arg::Index | Arg::Const(_) | Arg::Text(_) => None,
        });
        // A condition comes first.
        let first = names.next();
        let of = if first.as_deref() == Some("boolean") { names.next().or(first) } else { first };
        let Some(of) = of.filter(|_| row.signatures.len() > 4) else {
            lines.push((own.clone(), vec![(own, String::new())]));
            continue;
        };
        let pattern = with_word(&own, &of);
        match lines.iter_mut().find(|(known, _)| *known == pattern) {
            Some((_, members)) => members.push((own, of)),
            None => lines.push((pattern, vec![(own, of)])),
        }
    }
    let shown = lines.into_iter().map(|(pattern, members)| match members.as_slice() {
        [(own, _)] => own.clone(),
        several => {
            let types: Vec<_> = several.iter().map(|(_, of)| of.as_str()).collect();
            format!("{pattern} for T = {}", types.join(", "))
        }
    });
    shown.collect::<Vec<_>>().join("; ")
}

/// A signature with `T` in place of a type's name.
fn with_word(text: &str, of: &str) -> String {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\0']) {
        if part(c) {
            word.push(c);
            continue;
        }
        out.push_str(if word == of { "T" } else { &word });
        word.clear();
        out.extend((c != '\0').then_some(c));
    }
    out
}

fn shown(signature: &Signature) -> String {
    let args: Vec<_> = signature.args.iter().map(argument).collect();
    let returns = match signature.returns {
        Returns::Nothing => String::new(),
        Returns::Scalar(scalar) => format!(" → {}", scalar.name()),
        Returns::Complex(complex) => format!(" → {complex}"),
        Returns::Tuple(items) => {
            format!(" → ({})", items.iter().map(|item| item.name()).collect::<Vec<_>>().join(", "))
        }
        Returns::Array(scalar) => format!(" → {}[:]", scalar.name()),
    };
    format!("({}){returns}", args.join(", "))
}

fn argument(arg: &Arg) -> String {
    match arg {
        Arg::Scalar(scalar) => scalar.name().to_owned(),
        Arg::Complex(complex) => complex.to_string(),
        Arg::Array(scalar) => format!("{}[:]", scalar.name()),
        Arg::Records(fields) => {
            let fields: Vec<_> = fields.iter().map(|(name, scalar)| format!("{name}: {}", scalar.name())).collect();
            format!("record({})[:]", fields.join(", "))
        }
        Arg::Index => "index".to_owned(),
        Arg::Const(_) => "constant".to_owned(),
        Arg::DType(scalar) => format!("dtype {}", scalar.name()),
        Arg::Text(_) => "str".to_owned(),
    }
}
