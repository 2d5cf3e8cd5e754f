//! dev
use super::harness::confined_module;
#[test]
fn show() {
    let all = std::fs::read_to_string("/tmp/kernels.txt").unwrap();
    for part in all.split("----\n") {
        let (sig, source) = part.split_once('\n').unwrap();
        let module = confined_module(source, sig);
        println!("==== {} confinable {}\n{module}", source, module.confinable);
    }
}
