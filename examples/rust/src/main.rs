//! Heats a plate with a kernel that Python wrote: reads the package `heat/heat.weft` and launches its kernel `step` on a
//! GPU with cudarc.

use std::{error::Error, fs};

use cudarc::{
    driver::{CudaContext, DevicePtr, DevicePtrMut, LaunchConfig, PushKernelArg},
    nvrtc::Ptx,
};
use serde_json::Value;

const ROWS: usize = 300;
const COLS: usize = 500;
const STEPS: usize = 200;
const RATE: f32 = 0.2;

/// A package: its description, and the code of all images.
struct Package {
    description: Value,
    code: Vec<u8>,
}

impl Package {
    fn read(path: &str) -> Result<Self, Box<dyn Error>> {
        let bytes = fs::read(path)?;
        let word = |at: usize| -> Result<usize, Box<dyn Error>> {
            Ok(u32::from_le_bytes(bytes.get(at..at + 4).ok_or("the file is too short")?.try_into()?) as usize)
        };
        if !bytes.starts_with(b"weftkern") || word(8)? != 1 {
            return Err(format!("{path} is no package of version 1").into());
        }
        let end = 16 + word(12)?;
        let description = serde_json::from_slice(bytes.get(16..end).ok_or("the file is too short")?)?;
        Ok(Self { description, code: bytes[end..].to_vec() })
    }

    /// The PTX of a kernel for a compute capability such as 90: the newest that it runs.
    fn image(&self, kernel: &str, capability: u64) -> Option<&Value> {
        let kernels = self.description["kernels"].as_array()?;
        let images = kernels.iter().find(|found| found["name"] == kernel)?["images"].as_array()?;
        let target = |image: &Value| image["target"].as_str()?.strip_prefix("sm_")?.parse::<u64>().ok();
        let runs = |image: &&Value| image["format"] == "ptx" && target(image).is_some_and(|sm| sm <= capability);
        images.iter().filter(runs).max_by_key(|image| target(image))
    }

    fn ptx(&self, image: &Value) -> Option<String> {
        let (offset, size) = (image["offset"].as_u64()? as usize, image["size"].as_u64()? as usize);
        String::from_utf8(self.code.get(offset..offset + size)?.to_vec()).ok()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let package = Package::read("heat/heat.weft")?;
    let context = CudaContext::new(0)?;
    let (major, minor) = context.compute_capability()?;
    let image = package.image("step", (major * 10 + minor) as u64).ok_or("there is no code for this GPU")?;
    let module = context.load_module(Ptx::from_src(package.ptx(image).ok_or("the package is damaged")?))?;
    let step = module.load_function(image["symbol"].as_str().ok_or("the package is damaged")?)?;

    let stream = context.default_stream();
    let mut plate = vec![0_f32; ROWS * COLS];
    plate[..COLS].fill(100.0);
    let mut now = stream.clone_htod(&plate)?;
    let mut next = stream.alloc_zeros::<f32>(plate.len())?;
    let config = LaunchConfig {
        grid_dim: (COLS.div_ceil(32) as u32, ROWS.div_ceil(8) as u32, 1),
        block_dim: (32, 8, 1),
        shared_mem_bytes: 0,
    };
    for _ in 0..STEPS {
        {
            let ((u, _read), (out, _written)) = (now.device_ptr(&stream), next.device_ptr_mut(&stream));
            // The kernel takes the fields of its arguments that it uses, in the order of `slots`.
            let value = |slot: &Value| match (slot[0].as_u64(), slot[1].as_str(), slot[2].as_u64()) {
                (Some(0), Some("data"), _) => u,
                (Some(2), Some("data"), _) => out,
                (Some(1), Some("value"), _) => RATE.to_bits().into(),
                (_, Some("shape"), Some(0)) => ROWS as u64,
                (_, Some("shape"), Some(1)) => COLS as u64,
                _ => panic!("the kernel has another signature"),
            };
            let values: Vec<u64> = image["slots"].as_array().into_iter().flatten().map(value).collect();
            let mut launch = stream.launch_builder(&step);
            for value in &values {
                launch.arg(value);
            }
            // SAFETY: the values are those of the kernel's parameters, and both arrays have ROWS * COLS elements.
            unsafe { launch.launch(config)? };
        }
        std::mem::swap(&mut now, &mut next);
    }
    let plate = stream.clone_dtoh(&now)?;
    let mean = plate.iter().map(|&temperature| f64::from(temperature)).sum::<f64>() / plate.len() as f64;
    println!("GPU: mean {mean:.6}");
    Ok(())
}
