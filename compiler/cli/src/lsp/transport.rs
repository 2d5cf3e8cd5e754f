//! Messages between the server and an editor, over standard input and output.
//!
//! The transport answers invalid JSON and invalid JSON-RPC messages with an error, and the server continues. If the
//! start of the next message cannot be found, or a message exceeds [`MAX_BYTES`], the connection ends with the reason.

use std::{
    io::{self, BufRead, Read, Write},
    sync::{Arc, OnceLock},
    thread,
};

use lsp_server::{Connection, ErrorCode, Message};
use serde_json::{Value, json};

use crate::report::Stop;

/// The maximum size of a message in bytes. Editors send whole documents; a larger length indicates a broken header.
const MAX_BYTES: usize = 256 << 20;

/// The maximum length of a header line in bytes.
const MAX_LINE: u64 = 8 << 10;

/// The reader and writer threads.
pub(super) struct Transport {
    reader: thread::JoinHandle<()>,
    writer: thread::JoinHandle<io::Result<()>>,
    /// The protocol error after which nothing more can be read.
    broken: Arc<OnceLock<String>>,
}

/// The result of reading one message.
#[derive(Debug)]
enum Incoming {
    /// A valid message.
    Message(Message),
    /// An invalid message: the error response to it.
    Wrong(Value),
    /// The end of the input.
    End,
}

/// Opens the connection.
pub(super) fn stdio() -> io::Result<(Connection, Transport)> {
    let (server, editor) = Connection::memory();
    let Connection { sender, receiver } = editor;
    let broken = Arc::new(OnceLock::new());
    let reason = Arc::clone(&broken);
    let reader = thread::Builder::new().name("lsp-reader".to_owned()).spawn(move || {
        // The reason is stored before the channel closes, so the server sees it.
        if let Err(error) = forward(|message| sender.send(message).is_ok()) {
            reason.get_or_init(|| error);
        }
        drop(sender);
    })?;
    let writer = thread::Builder::new().name("lsp-writer".to_owned()).spawn(move || {
        for message in receiver {
            let mut answer = serde_json::to_value(message)?;
            if let Some(fields) = answer.as_object_mut() {
                fields.insert("jsonrpc".to_owned(), json!("2.0"));
            }
            write(&answer)?;
        }
        Ok(())
    })?;
    Ok((server, Transport { reader, writer, broken }))
}

/// Forwards messages until the editor sends `exit` or disconnects.
fn forward(mut send: impl FnMut(Message) -> bool) -> Result<(), String> {
    let mut input = io::stdin().lock();
    loop {
        match read(&mut input)? {
            Incoming::Message(message) => {
                let is_exit = matches!(&message, Message::Notification(one) if one.method == "exit");
                if !send(message) || is_exit {
                    return Ok(());
                }
            }
            Incoming::Wrong(answer) => write(&answer).map_err(|error| error.to_string())?,
            Incoming::End => return Ok(()),
        }
    }
}

impl Transport {
    /// Waits until all output is written. Returns `done`, the server's result, unless the input was broken: that error
    /// then takes precedence.
    pub(super) fn join(self, done: Result<u8, Stop>) -> Result<u8, Stop> {
        let panicked = |_| io::Error::other("a thread of the connection panicked");
        let written = self.writer.join().map_err(panicked)?;
        if let Some(reason) = self.broken.get() {
            return Err(Stop::Usage(format!("the client does not follow the protocol: {reason}")));
        }
        // If the server failed, the reader may still block on input. It is joined only after a normal end.
        let done = done?;
        self.reader.join().map_err(panicked)?;
        written?;
        Ok(done)
    }
}

/// Writes one message under the lock of standard output, because two threads write.
fn write(message: &Value) -> io::Result<()> {
    let text = message.to_string();
    let mut output = io::stdout().lock();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

/// Reads one message.
///
/// # Errors
///
/// The reason why the next message cannot be found.
fn read(input: &mut dyn BufRead) -> Result<Incoming, String> {
    let Some(length) = header(input)? else { return Ok(Incoming::End) };
    if length > MAX_BYTES {
        return Err(format!("a message of {length} bytes is larger than the {MAX_BYTES} that weft reads"));
    }
    // The buffer grows with the input instead of being allocated for a declared length up front.
    let mut body = Vec::new();
    Read::take(&mut *input, length as u64).read_to_end(&mut body).map_err(|error| error.to_string())?;
    if body.len() < length {
        return Err(format!("the input ends after {} of the {length} bytes of a message", body.len()));
    }
    let value: Value = match serde_json::from_slice(&body) {
        Ok(value) => value,
        Err(error) => {
            let message = format!("the message is not JSON: {error}");
            return Ok(Incoming::Wrong(wrong(&Value::Null, ErrorCode::ParseError, &message)));
        }
    };
    let id = value.get("id").filter(|id| id.is_number() || id.is_string()).cloned().unwrap_or_default();
    Ok(match serde_json::from_value(value) {
        Ok(message) => Incoming::Message(message),
        Err(_) => {
            let message = "the message is not a JSON-RPC request, notification or response";
            Incoming::Wrong(wrong(&id, ErrorCode::InvalidRequest, message))
        }
    })
}

fn wrong(id: &Value, code: ErrorCode, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code as i32, "message": message}})
}

/// The length of the message that follows. `None` at the end of the input.
fn header(input: &mut dyn BufRead) -> Result<Option<usize>, String> {
    let mut length = None;
    let mut is_first = true;
    loop {
        let mut line = Vec::new();
        Read::take(&mut *input, MAX_LINE).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        let shown = String::from_utf8_lossy(&line).chars().take(80).collect::<String>();
        if line.is_empty() && is_first {
            return Ok(None);
        }
        is_first = false;
        let Some(line) = line.strip_suffix(b"\n") else {
            return Err(format!("the header line {shown:?} is not terminated"));
        };
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        if line.is_empty() {
            return length.map(Some).ok_or_else(|| "a header has no Content-Length".to_owned());
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(format!("the header line {shown:?} has no colon"));
        };
        if name.trim().eq_ignore_ascii_case("Content-Length") {
            let value = value.trim();
            length = Some(value.parse().map_err(|_| format!("the Content-Length {value:?} is not a number of bytes"))?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Incoming, String> {
        read(&mut text.as_bytes())
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    fn code(body: &str) -> Option<i64> {
        match one(&framed(body)) {
            Ok(Incoming::Wrong(answer)) => answer.pointer("/error/code").and_then(Value::as_i64),
            Ok(Incoming::Message(_) | Incoming::End) | Err(_) => None,
        }
    }

    #[test]
    fn messages_are_read_and_what_is_none_is_answered() {
        assert!(matches!(one(&framed(r#"{"jsonrpc":"2.0","method":"exit"}"#)), Ok(Incoming::Message(_))));
        assert!(matches!(one(""), Ok(Incoming::End)));
        assert_eq!(["{]", "", "\u{0}"].map(code), [Some(-32700); 3]);
        assert_eq!(
            ["[]", "{}", "3", r#"{"id":1}"#, "null"].map(code),
            [Some(-32600), Some(-32600), Some(-32600), None, Some(-32600)]
        );
    }

    #[test]
    fn broken_headers_say_what_is_wrong() {
        for (text, word) in [
            ("Content-Length: 99999999999999\r\n\r\n{}", "larger"),
            ("Content-Length: 99999999999999999999999\r\n\r\n{}", "not a number"),
            ("Content-Length: -1\r\n\r\n{}", "not a number"),
            ("Content-Length: 9\r\n\r\n{}", "ends after 2"),
            ("Content-Type: x\r\n\r\n{}", "no Content-Length"),
            ("{}\r\n\r\n", "no colon"),
            ("Content-Length: 2", "not terminated"),
        ] {
            let reason = one(text).expect_err("it is broken");
            assert!(reason.contains(word), "{text:?}: {reason}");
        }
        let endless = "x".repeat(1 << 20);
        assert!(one(&endless).is_err_and(|reason| reason.len() < 200));
    }
}
