//! `weft lsp`: a language server for kernels, over standard input and output.
//!
//! Documents are synchronized as full text. The server checks a changed document after a pause in the editor's messages
//! and publishes the diagnostics of `weft check --notes`. Hovering over a variable of a kernel shows its type. The
//! protocol version is 3.17.

mod document;
mod fix;
mod text;
mod transport;

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::{
    CodeActionParams, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DidSaveTextDocumentParams, HoverParams, PublishDiagnosticsParams, Uri,
};
use serde_json::{Value, json};
use weft_compiler::VERSION;
use weft_engine::Engine;

use self::document::Document;
use crate::report::Stop;

/// The pause in the editor's messages after which changed documents are checked.
const DEBOUNCE: Duration = Duration::from_millis(150);

/// Serves one editor until it sends `exit` or disconnects.
pub(crate) fn lsp() -> Result<u8, Stop> {
    let (connection, transport) = transport::stdio()?;
    let done = serve(connection);
    transport.join(done)
}

fn serve(connection: Connection) -> Result<u8, Stop> {
    let broken =
        |error: &dyn std::fmt::Display| Stop::Usage(format!("the client does not follow the protocol: {error}"));
    let capabilities = json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            // 1 is `Full`: each change carries the whole text.
            "textDocumentSync": {"openClose": true, "change": 1, "save": {"includeText": false}},
            "hoverProvider": true,
            "codeActionProvider": {"codeActionKinds": ["quickfix"]},
        },
        "serverInfo": {"name": "weft", "version": VERSION},
    });
    let (id, params) = connection.initialize_start().map_err(|error| broken(&error))?;
    connection.initialize_finish(id, capabilities).map_err(|error| broken(&error))?;
    let notes = params.pointer("/initializationOptions/notes").and_then(Value::as_bool).unwrap_or(true);
    let mut server =
        Server { connection, engine: Engine::new(), notes, documents: BTreeMap::new(), dirty: BTreeSet::new() };
    // The writing thread ends when the server is dropped.
    server.run()
}

struct Server {
    connection: Connection,
    engine: Engine,
    /// Report where Numba's typing rules widen numbers.
    notes: bool,
    /// The open documents, by URI.
    documents: BTreeMap<String, Document>,
    /// URIs of the documents that have changed since their last check.
    dirty: BTreeSet<String>,
}

impl Server {
    fn run(&mut self) -> Result<u8, Stop> {
        loop {
            let message = if self.dirty.is_empty() {
                self.connection.receiver.recv().ok()
            } else {
                match self.connection.receiver.recv_timeout(DEBOUNCE) {
                    Ok(message) => Some(message),
                    Err(error) if error.is_timeout() => {
                        self.examine();
                        continue;
                    }
                    Err(_) => None,
                }
            };
            match message {
                // The editor has disconnected without `exit`.
                None => return Ok(1),
                Some(Message::Request(request)) => {
                    let is_last = self.connection.handle_shutdown(&request);
                    if is_last.map_err(|error| Stop::Usage(error.to_string()))? {
                        return Ok(0);
                    }
                    self.request(request);
                }
                Some(Message::Notification(notification)) => self.notification(notification),
                // The server sends no requests, so it expects no responses.
                Some(Message::Response(_)) => {}
            }
        }
    }

    fn send(&self, message: impl Into<Message>) {
        // A closed connection is detected by the next receive.
        let _gone = self.connection.sender.send(message.into());
    }

    fn request(&mut self, request: Request) {
        let Request { id, method, params } = request;
        let answer = match method.as_str() {
            "textDocument/hover" => match serde_json::from_value::<HoverParams>(params) {
                Ok(params) => Response::new_ok(id, self.hover(params)),
                Err(error) => Response::new_err(id, ErrorCode::InvalidParams as i32, error.to_string()),
            },
            "textDocument/codeAction" => match serde_json::from_value::<CodeActionParams>(params) {
                Ok(params) => Response::new_ok(id, self.fixes(&params)),
                Err(error) => Response::new_err(id, ErrorCode::InvalidParams as i32, error.to_string()),
            },
            _ => {
                let message = format!("weft does not serve {method}");
                Response::new_err(id, ErrorCode::MethodNotFound as i32, message)
            }
        };
        self.send(answer);
    }

    /// The document with up-to-date diagnostics.
    fn current(&mut self, uri: &Uri) -> Option<&Document> {
        if self.dirty.contains(uri.as_str()) {
            self.examine();
        }
        self.documents.get(uri.as_str())
    }

    fn fixes(&mut self, params: &CodeActionParams) -> Value {
        let Some(document) = self.current(&params.text_document.uri) else { return json!([]) };
        let actions = document.fixes(params.range).into_iter().map(|(title, diagnostic, edit)| {
            json!({
                "title": title,
                "kind": "quickfix",
                "isPreferred": true,
                "diagnostics": [diagnostic],
                "edit": {"changes": {params.text_document.uri.as_str(): [edit]}},
            })
        });
        actions.collect()
    }

    fn hover(&mut self, params: HoverParams) -> Value {
        let place = params.text_document_position_params;
        if self.current(&place.text_document.uri).is_none() {
            return Value::Null;
        }
        let Some(document) = self.documents.get(place.text_document.uri.as_str()) else { return Value::Null };
        let said = guarded(|| document.hover(&self.engine, place.position)).flatten();
        let Some((said, range)) = said else { return Value::Null };
        let contents = json!({"kind": "markdown", "value": said});
        match range {
            Some(range) => json!({"contents": contents, "range": range}),
            None => json!({"contents": contents}),
        }
    }

    fn notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        match method.as_str() {
            "textDocument/didOpen" => {
                if let Ok(DidOpenTextDocumentParams { text_document: opened }) = serde_json::from_value(params) {
                    let key = opened.uri.as_str().to_owned();
                    self.dirty.insert(key.clone());
                    self.documents.insert(key, Document::new(opened.uri, opened.text, opened.version));
                }
            }
            "textDocument/didChange" => {
                let changed = serde_json::from_value::<DidChangeTextDocumentParams>(params);
                let Ok(DidChangeTextDocumentParams { text_document, content_changes }) = changed else { return };
                let key = text_document.uri.as_str();
                if let (Some(document), Some(last)) =
                    (self.documents.get_mut(key), content_changes.into_iter().next_back())
                {
                    document.text = last.text;
                    document.version = text_document.version;
                    self.dirty.insert(key.to_owned());
                }
            }
            "textDocument/didSave" => {
                if let Ok(DidSaveTextDocumentParams { .. }) = serde_json::from_value(params) {
                    // Other documents may import the saved one.
                    self.dirty.extend(self.documents.keys().cloned());
                }
            }
            "textDocument/didClose" => {
                if let Ok(DidCloseTextDocumentParams { text_document }) = serde_json::from_value(params) {
                    self.documents.remove(text_document.uri.as_str());
                    self.dirty.remove(text_document.uri.as_str());
                    self.publish(text_document.uri, Vec::new(), None);
                }
            }
            _ => {}
        }
    }

    /// Checks the documents that have changed.
    fn examine(&mut self) {
        for key in std::mem::take(&mut self.dirty) {
            let Some(document) = self.documents.get_mut(&key) else { continue };
            let Ok(uri) = key.parse::<Uri>() else { continue };
            let version = document.version;
            let (engine, notes) = (&self.engine, self.notes);
            if let Some(found) = guarded(|| document.examine(engine, notes)) {
                self.publish(uri, found, Some(version));
            }
        }
    }

    fn publish(&self, uri: Uri, diagnostics: Vec<lsp_types::Diagnostic>, version: Option<i32>) {
        let params = PublishDiagnosticsParams { uri, diagnostics, version };
        self.send(Notification::new("textDocument/publishDiagnostics".to_owned(), params));
    }
}

/// Catches a panic of weft in one document, so that the server continues. The panic message goes to standard error.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
