//! `weft devices`.

use std::{io::Write, sync::Arc};

use weft_runtime::{DeviceAttributes, DeviceChoice, Settings, cpu, cuda};

use crate::{Surroundings, loader::Loader, report::Stop};

/// Lists the CUDA devices and the CPU, or says why there is no CUDA device.
pub(crate) fn devices(surroundings: &Surroundings, stdout: &mut dyn Write) -> Result<u8, Stop> {
    let settings = Settings::from_env(surroundings.variable).map_err(|error| Stop::Usage(error.message))?;
    for ordinal in 0..cuda::device_count() {
        match cuda::open(&settings, ordinal) {
            Ok(device) => {
                let attributes = device.attributes();
                let (major, minor) = attributes.driver_version;
                let processors = attributes.multiprocessor_count;
                let last = format!("{processors} SMs, driver for CUDA {major}.{minor}");
                line(stdout, &format!("cuda:{ordinal}"), attributes, &device.target(), &last)?;
            }
            Err(error) => writeln!(stdout, "cuda:{ordinal}  cannot be opened: {error}")?,
        }
    }
    if let Some(reason) = cuda::why_none() {
        let instead = if settings.device == DeviceChoice::Auto { ". Kernels run on the CPU" } else { "" };
        writeln!(stdout, "cuda    none: {reason}{instead}")?;
    }
    match cpu::open(&settings, Arc::new(Loader)) {
        Ok(device) => {
            let attributes = device.attributes();
            line(stdout, "cpu", attributes, &device.target(), &format!("{} cores", attributes.multiprocessor_count))?;
        }
        Err(error) => writeln!(stdout, "cpu     cannot be opened: {error}")?,
    }
    Ok(0)
}

fn line(stdout: &mut dyn Write, id: &str, device: &DeviceAttributes, target: &str, last: &str) -> Result<(), Stop> {
    let (major, minor) = device.compute_capability;
    let gib = device.total_memory as f64 / f64::from(1 << 30);
    writeln!(
        stdout,
        "{id:<6}  {}: compute capability {major}.{minor}, target {target}, {gib:.1} GiB, {last}",
        device.name
    )?;
    Ok(())
}
