package controlplane

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Part is one process of a control plane.
type Part string

// The parts, in the order in which they start.
const (
	Etcd              Part = "etcd"
	APIServer         Part = "kube-apiserver"
	ControllerManager Part = "kube-controller-manager"
	Scheduler         Part = "kube-scheduler"
	Kwok              Part = "kwok"
)

// Parts returns every part, in the order in which they start.
func Parts() []Part {
	return []Part{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
}

// layout is where one control plane keeps its files and listens. It does not
// change while the control plane lives, so that a part comes back as it was.
type layout struct {
	dir      string
	binaries Binaries
	options  Options

	etcdClient, etcdPeer, apiServer, controllerManager, scheduler, kwok int
}

const portsPerControlPlane = 6

func newLayout(dir string, b Binaries, o Options, ports []int) layout {
	return layout{
		dir: dir, binaries: b, options: o,
		etcdClient: ports[0], etcdPeer: ports[1], apiServer: ports[2],
		controllerManager: ports[3], scheduler: ports[4], kwok: ports[5],
	}
}

func (l layout) file(name string) string     { return filepath.Join(l.dir, name) }
func (l layout) log(part Part) string        { return l.file(string(part) + ".log") }
func (l layout) server() string              { return "https://" + address(l.apiServer) }
func (l layout) identityOf(part Part) string { return l.file(string(part) + ".kubeconfig") }

// ports are those on which a part listens.
func (l layout) ports(part Part) []int {
	return map[Part][]int{
		Etcd: {l.etcdClient, l.etcdPeer}, APIServer: {l.apiServer}, ControllerManager: {l.controllerManager},
		Scheduler: {l.scheduler}, Kwok: {l.kwok},
	}[part]
}

// health is the URL that answers 200 when the part works.
func (l layout) health(part Part) string {
	switch part {
	case Etcd:
		return "http://" + address(l.etcdClient) + "/readyz"
	case APIServer:
		return l.server() + "/readyz"
	case ControllerManager:
		return "https://" + address(l.controllerManager) + "/healthz"
	case Scheduler:
		return "https://" + address(l.scheduler) + "/healthz"
	case Kwok:
		return "http://" + address(l.kwok) + "/healthz"
	}
	panic("no such part: " + string(part))
}

// command is the program of a part with its arguments.
func (l layout) command(part Part) []string {
	var args []string
	switch part {
	case Etcd:
		args = l.etcdArgs()
	case APIServer:
		args = l.apiServerArgs()
	case ControllerManager:
		args = l.controllerManagerArgs()
	case Scheduler:
		args = l.schedulerArgs()
	case Kwok:
		args = l.kwokArgs()
	}
	return append(args, l.options.ExtraArgs[part]...)
}

func (l layout) etcdArgs() []string {
	client, peer := "http://"+address(l.etcdClient), "http://"+address(l.etcdPeer)
	return []string{
		l.binaries.Etcd,
		"--name=default",
		"--data-dir=" + l.file("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		// A crash of the machine loses the data, and the folder with it.
		"--unsafe-no-fsync",
		// A lone member need not wait for others before it elects itself.
		"--heartbeat-interval=50", "--election-timeout=500",
		"--log-level=warn",
	}
}

func (l layout) apiServerArgs() []string {
	args := []string{
		l.binaries.APIServer,
		"--etcd-servers=http://" + address(l.etcdClient),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(l.apiServer),
		"--tls-cert-file=" + l.file("serving.crt"),
		"--tls-private-key-file=" + l.file("serving.key"),
		"--client-ca-file=" + l.file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + l.file("sa.key"),
		"--service-account-signing-key-file=" + l.file("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--profiling=false",
		// No one reaches the server by its Service, whose endpoint may not be a loopback address.
		"--endpoint-reconciler-type=none",
	}
	if gates := cmp.Or(l.options.FeatureGates, os.Getenv(FeatureGatesVariable)); gates != "" {
		args = append(args, "--feature-gates="+gates)
	}
	if l.options.Audit {
		args = append(args,
			"--audit-policy-file="+l.file(auditPolicyFile),
			"--audit-log-path="+l.file(auditLogFile),
			// One file however long the run, or a mark would point into another.
			"--audit-log-maxsize=1000000",
		)
	}
	return args
}

func (l layout) controllerManagerArgs() []string {
	kubeconfig := l.identityOf(ControllerManager)
	return append(l.controllerArgs(l.binaries.ControllerManager, kubeconfig, l.controllerManager),
		"--root-ca-file="+l.file("ca.crt"),
		"--service-account-private-key-file="+l.file("sa.key"),
		// Each controller has a user of its own, as in a real cluster.
		"--use-service-account-credentials=true",
		// Instead of 15 s, so that a test need not wait for the first look at an autoscaler.
		"--horizontal-pod-autoscaler-sync-period=2s",
	)
}

func (l layout) schedulerArgs() []string {
	return l.controllerArgs(l.binaries.Scheduler, l.identityOf(Scheduler), l.scheduler)
}

// controllerArgs are those that the controller manager and the scheduler share.
func (l layout) controllerArgs(program, kubeconfig string, port int) []string {
	return []string{
		program,
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		// Spares the wait for a ConfigMap about clients that do not exist here.
		"--authentication-skip-lookup=true",
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + l.file("serving.crt"),
		"--tls-private-key-file=" + l.file("serving.key"),
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
	}
}

func (l layout) kwokArgs() []string {
	return []string{
		l.binaries.Kwok,
		"--kubeconfig=" + l.identityOf(Kwok),
		"--config=" + l.binaries.stages,
		"--manage-all-nodes=true",
		"--node-ip=10.0.0.1",
		"--cidr=10.1.0.0/16",
		// Renewed leases keep the node from being taken for dead.
		"--node-lease-duration-seconds=40",
		"--server-address=" + address(l.kwok),
	}
}

// node is the simulated node with a number, as JSON for the API server.
func node(n int) string {
	const resources = `{"cpu":"32","memory":"64Gi","ephemeral-storage":"512Gi","pods":"1000"}`
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-%d",`+
		`"labels":{"kubernetes.io/hostname":"node-%[1]d","kubernetes.io/os":"linux","kubernetes.io/arch":"amd64","type":"kwok"},`+
		`"annotations":{"kwok.x-k8s.io/node":"fake"}},`+
		`"status":{"capacity":%[2]s,"allocatable":%[2]s}}`, n, resources)
}
