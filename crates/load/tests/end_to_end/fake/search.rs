//! A read model, or an Elasticsearch, behind the fake gateway, in which instances appear after some searches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::FakeGateway;

/// What is wrong with it.
#[derive(Clone, Copy, Default)]
pub struct SearchFaults {
    /// Finds an instance after it was searched for in vain as often as this, in each way.
    pub in_vain: u64,
    /// Never finds the instances whose key is divisible by this; zero is none.
    pub lose_every: i64,
    /// Finds an instance that nobody asked for.
    pub confuse: bool,
}

#[derive(Clone)]
pub struct FakeSearch {
    gateway: FakeGateway,
    faults: SearchFaults,
    /// By what was asked for.
    searches: Arc<Mutex<HashMap<String, u64>>>,
}

impl FakeSearch {
    /// Serves on a free port for as long as the test runs.
    pub async fn start(gateway: &FakeGateway, faults: SearchFaults) -> (FakeSearch, String) {
        let search = FakeSearch { gateway: gateway.clone(), faults, searches: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound address").to_string();
        let server = search.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move { server.serve(BufReader::new(stream)).await });
            }
        });
        (search, address)
    }

    /// How many different things were asked for.
    pub fn wanted(&self) -> usize {
        self.searches.lock().expect("no handler panics").len()
    }

    async fn serve(&self, mut stream: BufReader<TcpStream>) {
        loop {
            let (mut path, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                    return;
                }
                let line = line.trim_end().to_lowercase();
                match line.strip_prefix("content-length: ") {
                    _ if line.is_empty() => break,
                    Some(value) => length = value.parse().expect("a length"),
                    None if path.is_empty() => path = line.split(' ').nth(1).expect("a path").to_owned(),
                    None => {}
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.expect("the body");
            let (status, answer) = self.answer(&path, &String::from_utf8(body).expect("text"));
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn answer(&self, path: &str, body: &str) -> (u16, String) {
        if let Some(key) = path.strip_prefix("/v2/process-instances/").filter(|rest| *rest != "search") {
            return match self.find(path, key.parse().ok()) {
                Some(key) => (200, format!(r#"{{"processInstanceKey":"{key}"}}"#)),
                None => (404, r#"{"title":"NOT_FOUND","status":404,"detail":"not found"}"#.to_owned()),
            };
        }
        let body_read: Value = serde_json::from_str(body).expect("JSON");
        let found = if path == "/v2/process-instances/search" {
            assert!(body_read["filter"]["processDefinitionId"].is_string(), "{body}");
            let variable = &body_read["filter"]["variables"][0];
            assert_eq!(variable["name"], "loadTag");
            let tag: String = serde_json::from_str(variable["value"].as_str().expect("text")).expect("JSON");
            self.find(body, self.gateway.instance(&tag))
        } else {
            return (200, self.found_together(path, &body_read));
        };
        let items = found.map(|key| format!(r#"{{"processInstanceKey":"{key}"}}"#));
        (200, format!(r#"{{"items":[{}],"page":{{}}}}"#, items.unwrap_or_default()))
    }

    /// Elasticsearch is asked for all instances that are wanted, and names each one of which it has a record.
    fn found_together(&self, path: &str, body: &Value) -> String {
        let filter = body["query"]["bool"]["filter"].as_array().expect("terms");
        let terms = |name: &str| {
            let terms = filter.iter().find_map(|term| term["terms"].get(name)).expect("it is asked for");
            terms.as_array().expect("a list").clone()
        };
        let wanted: Vec<Option<i64>> = match path {
            "/*_process-instance_*/_search" => {
                terms("value.processInstanceKey").iter().map(|key| Some(key.as_i64().expect("a key"))).collect()
            }
            "/*_variable_*/_search" => {
                assert!(terms("value.bpmnProcessId").iter().all(Value::is_string), "{body}");
                let tag = |tag: &Value| serde_json::from_str::<String>(tag.as_str().expect("text")).expect("JSON");
                terms("value.value").iter().map(|value| self.gateway.instance(&tag(value))).collect()
            }
            other => panic!("nothing is at {other}"),
        };
        let found = wanted.into_iter().filter_map(|key| self.find(&format!("{path} {key:?}"), key));
        let buckets: Vec<String> = found.map(|key| format!(r#"{{"key":{key},"doc_count":1}}"#)).collect();
        format!(r#"{{"hits":{{"hits":[]}},"aggregations":{{"found":{{"buckets":[{}]}}}}}}"#, buckets.join(","))
    }

    /// What this search finds now of an instance that exists.
    fn find(&self, search: &str, key: Option<i64>) -> Option<i64> {
        let mut searches = self.searches.lock().expect("no handler panics");
        let made = searches.entry(search.to_owned()).or_default();
        *made += 1;
        let key = key.filter(|_| *made > self.faults.in_vain)?;
        match self.faults.lose_every {
            every if every != 0 && key % every == 0 => None,
            _ => Some(key + (i64::from(self.faults.confuse) << 40)),
        }
    }
}
