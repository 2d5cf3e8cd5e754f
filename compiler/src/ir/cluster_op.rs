//! Operations of thread block clusters.

use weft_artifact::Scalar;

use super::{
    Type,
    op::{Elements, Memory, ORDERS, OpRow, Operand, SyncScope},
};

/// An operation of the cluster of the thread's block. A launch without clusters has clusters of one block. PTX ISA,
/// "barrier.cluster" and "mapa".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterOp {
    /// The rank of the thread's block in the cluster, a `U32`.
    Rank,
    /// The number of blocks of the cluster, a `U32`.
    Size,
    /// A barrier of all threads of the cluster that have not returned. It orders their memory accesses. The result is false
    /// if the others can never come to it: on the CPU, since a GPU waits forever.
    Sync,
    /// The generic address, in the shared memory of the block with a rank, of what the pointer has in that of the thread's
    /// block.
    Shared,
}

impl ClusterOp {
    /// The PTX. `$0` is the result, or the first operand if there is none.
    pub const fn ptx(self) -> &'static str {
        match self {
            Self::Rank => "mov.u32 $0, %cluster_ctarank;",
            Self::Size => "mov.u32 $0, %cluster_nctarank;",
            Self::Sync => "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;",
            Self::Shared => "mapa.u64 $0, $1, $2;",
        }
    }

    /// The properties of the operation.
    pub(super) const fn row(self) -> OpRow {
        const WORD: &[Operand] = &[Operand::Is(Type::Scalar(Scalar::U32))];
        match self {
            Self::Rank => {
                OpRow { name: "cluster.rank", results: WORD, orders: false, ptx: &["%cluster_ctarank"], ..ORDERS }
            }
            Self::Size => {
                OpRow { name: "cluster.size", results: WORD, orders: false, ptx: &["%cluster_nctarank"], ..ORDERS }
            }
            Self::Sync => OpRow {
                name: "cluster.sync",
                results: &[Operand::Is(Type::BOOL)],
                together: SyncScope::Cluster,
                ptx: &["barrier.cluster.arrive"],
                ..ORDERS
            },
            // Other blocks access the array by such addresses.
            Self::Shared => OpRow {
                name: "cluster.shared",
                operands: &[Operand::Pointer, Operand::Is(Type::Scalar(Scalar::U32))],
                results: &[Operand::Pointer],
                elements: Elements::Any,
                memory: Memory::Updates,
                ptx: &["mapa"],
                ..ORDERS
            },
        }
    }
}
