//! Starts a control plane on free loopback ports, and stops it.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{self, Stdio},
};

use anyhow::{Context, Result, anyhow, bail};
use http::Method;
use serde_json::json;
use tokio::{
    process::{Child, Command},
    task::JoinHandle,
};

use crate::{Cluster, Programs, cluster, programs, until, volumes};

const ATTEMPTS: usize = 3;

/// A control plane that this process started. Dropping it kills it.
#[derive(Debug)]
pub struct ControlPlane {
    components: Vec<Component>,
    cluster: Cluster,
    volumes: JoinHandle<()>,
}

#[derive(Debug)]
struct Component {
    name: &'static str,
    child: Child,
}

/// What a start needs to know.
struct Plan<'a> {
    dir: &'a Path,
    guard: &'a Path,
    programs: Programs,
    state: State,
}

/// What the folder of a control plane holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing that counts.
    New,
    /// What an earlier one stored, if there was one.
    Kept,
}

impl ControlPlane {
    /// Starts a control plane that keeps its state and its logs in `dir`, and returns when a pod could run.
    ///
    /// `guard` is the program `testcluster`: it makes each component die with this process, however this process dies.
    /// The caller must not end the thread that it calls from before it stops the control plane.
    ///
    /// # Errors
    /// A component could not be started, ended, or did not become ready; the message names its log.
    pub async fn start(dir: &Path, guard: &Path) -> Result<Self> {
        Self::launch(dir, guard, State::New).await
    }

    /// As [`Self::start`], but with all that an earlier control plane stored in `dir`.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn resume(dir: &Path, guard: &Path) -> Result<Self> {
        Self::launch(dir, guard, State::Kept).await
    }

    async fn launch(dir: &Path, guard: &Path, state: State) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let plan = Plan { dir: &dir.canonicalize()?, guard, programs: Programs::locate(), state };
        for _ in 1..ATTEMPTS {
            match plan.start().await {
                Err(error) if plan.lost_a_port() => drop(error), // someone took it between our look and the start
                result => return result,
            }
        }
        plan.start().await
    }

    /// The handle for tests.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Ends when a component ends by itself, with its name.
    pub async fn failure(&mut self) -> &'static str {
        let ends = self.components.iter_mut().map(|component| {
            let name = component.name;
            Box::pin(async move {
                let _ = component.child.wait().await;
                name
            })
        });
        futures::future::select_all(ends).await.0
    }

    /// Kills every component and waits until all are gone. Nothing of the state is worth a gentler end.
    ///
    /// # Errors
    /// A component could not be killed.
    pub async fn stop(mut self) -> Result<()> {
        self.volumes.abort();
        for component in self.components.iter_mut().rev() {
            component.child.kill().await.with_context(|| format!("could not kill {}", component.name))?;
        }
        Ok(())
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.volumes.abort();
    }
}

impl Plan<'_> {
    async fn start(&self) -> Result<ControlPlane> {
        if self.state == State::New {
            let _ = fs::remove_dir_all(self.dir.join("etcd"));
        }
        let [etcd, peer, server] = free_ports()?;
        let mut components = vec![
            self.spawn("etcd", &etcd_flags(&self.dir.join("etcd"), etcd, peer))?,
            self.spawn("kube-apiserver", &apiserver_flags(&self.dir.join("certs"), etcd, server, &self.tokens()?))?,
        ];
        let kubeconfig = self.dir.join("kubeconfig");
        let config = cluster::kubeconfig(&format!("https://127.0.0.1:{server}"), TOKEN, "default");
        fs::write(&kubeconfig, config.to_string())?;
        let cluster = Cluster::open(&kubeconfig)?;
        self.wait_for_server(&cluster, &mut components).await?;
        for (name, flags) in self.clients(&kubeconfig)? {
            components.push(self.spawn(name, &flags)?);
        }
        prepare(&cluster).await?;
        let volumes = tokio::spawn(volumes::provide(cluster.clone()));
        Ok(ControlPlane { components, cluster, volumes })
    }

    /// Starts a component through the guard, in a process group of its own: an interrupt at the terminal is ours to pass on.
    fn spawn(&self, name: &'static str, flags: &[String]) -> Result<Component> {
        let log = File::create(self.dir.join(format!("{name}.log")))?;
        let child = Command::new(self.guard)
            .arg("guard")
            .arg(process::id().to_string())
            .arg(self.programs.path(name))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("could not start {name}"))?;
        Ok(Component { name, child })
    }

    fn tokens(&self) -> Result<PathBuf> {
        let path = self.dir.join("tokens.csv");
        fs::write(&path, format!("{TOKEN},admin,admin,system:masters\n"))?;
        Ok(path)
    }

    async fn wait_for_server(&self, cluster: &Cluster, components: &mut [Component]) -> Result<()> {
        until("kube-apiserver", async || {
            for component in &mut *components {
                if component.child.try_wait()?.is_some() {
                    bail!("{} ended; see its log in {}", component.name, self.dir.display());
                }
            }
            let answer = cluster.send(Method::GET, "/readyz", None).await;
            Ok(answer.ok().filter(|(status, _)| status.is_success()))
        })
        .await
        .map(drop)
    }

    fn clients(&self, kubeconfig: &Path) -> Result<[(&'static str, Vec<String>); 3]> {
        let config = kubeconfig.display();
        let controllers = format!(
            "--kubeconfig={config} --use-service-account-credentials --leader-elect=false --secure-port=0 \
             --kube-api-qps=200 --kube-api-burst=400 --concurrent-deployment-syncs=20 --concurrent-namespace-syncs=20"
        );
        let scheduler = format!(
            "--kubeconfig={config} --authentication-kubeconfig={config} --authorization-kubeconfig={config} \
             --leader-elect=false --secure-port=0"
        );
        let kwok = format!(
            "--kubeconfig={config} --manage-all-nodes=true --cidr=10.1.0.0/16 --node-ip=127.0.0.1 \
             --node-lease-duration-seconds=40"
        );
        let mut kwok = words(&kwok);
        kwok.extend(programs::stages()?.iter().map(|stage| format!("--config={}", stage.display())));
        Ok([("kube-controller-manager", words(&controllers)), ("kube-scheduler", words(&scheduler)), ("kwok", kwok)])
    }

    fn lost_a_port(&self) -> bool {
        ["etcd", "kube-apiserver"].iter().any(|name| {
            fs::read_to_string(self.dir.join(format!("{name}.log")))
                .is_ok_and(|log| log.contains("address already in use"))
        })
    }
}

const TOKEN: &str = "admintoken";

/// How many bytes etcd may hold: a benchmark's records come near the 2 GiB that it allows by itself.
const QUOTA: u64 = 8 << 30;

fn etcd_flags(data: &Path, client: u16, peer: u16) -> Vec<String> {
    let mut flags = words(&format!(
        "--unsafe-no-fsync --log-level=error --quota-backend-bytes={QUOTA} --listen-client-urls=http://127.0.0.1:{client} \
         --advertise-client-urls=http://127.0.0.1:{client} --listen-peer-urls=http://127.0.0.1:{peer}"
    ));
    flags.push(format!("--data-dir={}", data.display()));
    flags
}

/// The server makes its own certificate before it reads the key of the service accounts, so that the one serves as the other.
fn apiserver_flags(certs: &Path, etcd: u16, port: u16, tokens: &Path) -> Vec<String> {
    let key = certs.join("apiserver.key");
    let mut flags = words(&format!(
        "--etcd-servers=http://127.0.0.1:{etcd} --secure-port={port} --bind-address=127.0.0.1 \
         --service-cluster-ip-range=10.0.0.0/16 --service-account-issuer=https://kubernetes.default.svc \
         --authorization-mode=RBAC --disable-admission-plugins=TaintNodesByCondition --allow-privileged=true"
    ));
    flags.extend([
        format!("--cert-dir={}", certs.display()),
        format!("--service-account-key-file={}", key.display()),
        format!("--service-account-signing-key-file={}", key.display()),
        format!("--token-auth-file={}", tokens.display()),
    ]);
    flags
}

fn words(flags: &str) -> Vec<String> {
    flags.split_whitespace().map(str::to_owned).collect()
}

/// Ports that nobody uses now. All are held until all are known, so that they differ.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let listeners = (0..N).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect::<Result<Vec<_>, _>>()?;
    let ports = listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect::<Result<Vec<_>>>()?;
    ports.try_into().map_err(|_| anyhow!("a port is missing"))
}

/// Adds what a cluster has: a node, a storage class, the service account that pods use.
async fn prepare(cluster: &Cluster) -> Result<()> {
    let room = json!({ "cpu": "512", "memory": "1024Gi", "pods": "5000" });
    let node = json!({
        "metadata": { "name": "node", "labels": { "kubernetes.io/hostname": "node", "type": "kwok" } },
        "status": { "allocatable": room, "capacity": room },
    });
    if cluster.get("/api/v1/nodes/node").await?.is_none() {
        cluster.create("/api/v1/nodes", &node).await?;
    }
    volumes::create_class(cluster).await?;
    until("the node", async || {
        let node = cluster.get("/api/v1/nodes/node").await?.unwrap_or_default();
        let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
        Ok(conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True").then_some(()))
    })
    .await?;
    until("the default service account", async || {
        cluster.get("/api/v1/namespaces/default/serviceaccounts/default").await
    })
    .await
    .map(drop)
}
