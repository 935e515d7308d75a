package main

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"operetta.dev/test/internal/binary"
	"operetta.dev/test/internal/screen"
)

// The operator that operetta install installs.
const (
	operatorNamespace = "operetta-system"
	operatorUser      = "system:serviceaccount:operetta-system:operetta"
	accounts          = "system:serviceaccounts"
	lease             = "operetta.dev"
)

// A process is one of the two of the operator.
type process struct {
	*child

	name  string
	leads atomic.Bool
}

// say shows a line of the log, which also says that the process leads from now on.
func (p *process) say(show func(string)) func(string) {
	return func(line string) {
		if strings.Contains(line, "uccessfully acquired lease") {
			p.leads.Store(true)
		}
		show(line)
	}
}

// installedSteps are the steps of a demo of an installed operator: two processes with the rights of its roles,
// of which one acts, and packages that are objects of the cluster, one with its files and one in a registry.
func (d *demo) installedSteps() []func(context.Context) error {
	return []func(context.Context) error{
		d.prepare, d.install, d.startProcesses,
		d.applyPackage, d.applySample, d.waitReady,
		d.startRegistry, d.push, d.applyPushed, d.greet, d.endRegistry,
		d.killLeader, d.change, d.changeGreeting,
		d.applySmall, d.rollGood, d.rollBad, d.leave,
	}
}

// install applies what operetta install and operetta rbac print.
func (d *demo) install(ctx context.Context) error {
	st := d.screen.Start("install")
	d.cluster = connect(d.plane.Kubectl(), d.plane.Kubeconfig(), d.plane.Dir())
	var err error
	if d.proxy, err = startChild(func(string) {}, d.plane.Kubectl(), d.cluster.proxy()...); err == nil {
		install := []string{"install", "--packages-from-cluster", "--pull-secret", pullSecret}
		err = errors.Join(d.applyPrinted(ctx, install), d.allow(ctx, packageDir))
	}
	st.End(err, "operetta install --packages-from-cluster | kubectl apply -f -")
	return err
}

// allow gives the operator the rights to what the package in a folder renders.
func (d *demo) allow(ctx context.Context, dir string) error {
	return d.applyPrinted(ctx, []string{"rbac", dir, "--packages-from-cluster"})
}

// applyPrinted applies what a command of the binary prints.
func (d *demo) applyPrinted(ctx context.Context, command []string) error {
	printed, err := runTool(ctx, binary.Path, command...)
	if err != nil {
		return err
	}
	return d.applyText(ctx, command[0]+".yaml", printed)
}

// applyText applies manifests.
func (d *demo) applyText(ctx context.Context, name string, text []byte) error {
	file := filepath.Join(d.plane.Dir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	_, err := d.cluster.run(ctx, "apply", "--server-side", "-f", file)
	return err
}

// startProcesses starts two processes as the service account. The nodes of the control plane run no
// containers, so the processes run here.
func (d *demo) startProcesses(ctx context.Context) error {
	st := d.screen.Start("start two processes of the operator")
	kubeconfig, err := d.plane.KubeconfigFor(operatorUser, accounts)
	for _, name := range []string{"operetta-1", "operetta-2"} {
		if err == nil {
			err = d.startProcess(name, kubeconfig)
		}
		// The second one starts when the first one leads: two that want the Lease at the same time say so in their logs.
		if err == nil && d.operator == nil {
			d.operator = d.processes[0].child
			err = d.poll(ctx, d.timeout, name+" to lead", func(ctx context.Context) (bool, error) {
				holder, err := d.leader(ctx)
				return holder != "" && d.processes[0].leads.Load(), err
			})
		}
	}
	st.End(err, "as "+operatorUser)
	return err
}

// startProcess starts one process.
func (d *demo) startProcess(name, kubeconfig string) (err error) {
	p := &process{name: name}
	p.child, err = startChild(p.say(d.logOf(name)), binary.Path, "run", "--packages-from-cluster", "--kubeconfig", kubeconfig,
		"--pull-secret-namespace", operatorNamespace, "--leader-elect", "--leader-elect-namespace", operatorNamespace)
	if err == nil {
		d.processes = append(d.processes, p)
	}
	return err
}

// leader returns who holds the Lease, or "".
func (d *demo) leader(ctx context.Context) (string, error) {
	var got struct {
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	}
	err := d.cluster.get(ctx, path.Join("/apis/coordination.k8s.io/v1/namespaces", operatorNamespace, "leases", lease), &got)
	if errors.Is(err, errAbsent) {
		err = nil
	}
	return got.Spec.HolderIdentity, err
}

// killLeader kills the process that acts, and waits until the other one leads.
func (d *demo) killLeader(ctx context.Context) error {
	st := d.screen.Start("kill the process that leads")
	was, err := d.leader(ctx)
	if err != nil {
		st.End(err, "")
		return err
	}
	leader, other := d.processes[0], d.processes[1]
	if !leader.leads.Load() {
		leader, other = other, leader
	}
	d.operator = other.child
	begin := time.Now()
	_ = leader.cmd.Process.Kill() // it may be gone already, and then the other one leads as well
	<-leader.done
	err = d.poll(ctx, d.timeout, "the other process to lead", func(ctx context.Context) (bool, error) {
		// An API server that is away for a moment leaves the picture as it is.
		_, _ = d.draw(ctx, d.sampled)
		now, err := d.leader(ctx)
		return now != "" && now != was, err
	})
	st.End(err, leader.name+" was killed, and "+other.name+" leads after "+screen.Seconds(time.Since(begin)))
	d.screen.Keep()
	return err
}

// change scales the sample, and waits until the process that is left has acted.
func (d *demo) change(ctx context.Context) error {
	st := d.screen.Start("scale " + d.subject())
	patch := `{"spec":{"replicas":5}}`
	err := d.patchUntilReady(ctx, d.sampled, patch)
	st.End(err, "kubectl patch "+d.subject()+" -p '"+patch+"'")
	return err
}

// patchUntilReady patches a resource, draws it until it is Ready, and leaves its picture.
func (d *demo) patchUntilReady(ctx context.Context, r resource, patch string) error {
	_, err := d.cluster.run(ctx, "patch", r.Kind, r.Metadata.Name, "--namespace", r.Metadata.Namespace, "--type=merge", "-p", patch)
	if err == nil {
		err = d.drawUntilReady(ctx, r)
	}
	d.screen.Keep()
	return err
}
