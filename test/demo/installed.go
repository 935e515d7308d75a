package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// packageName is the name of the Package of the demo, and packageDir its folder.
const (
	packageName = "webapp"
	packageDir  = "cue/webapp"
	packagePath = "/apis/operetta.dev/v1alpha1/packages/" + packageName
)

// A process is one of the two of the operator.
type process struct {
	*child

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

// packageObject is the part of a Package that the demo looks at.
type packageObject struct {
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
		SourceDigest string `json:"sourceDigest"`
		Canary       struct {
			Phase  string `json:"phase"`
			Digest string `json:"digest"`
		} `json:"canary"`
	} `json:"status"`
}

// ready reports whether the Package is served.
func (p packageObject) ready() bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// installedSteps are the steps of a demo of an installed operator: two processes with the rights of its roles,
// of which one acts, and a package that is an object of the cluster.
func (d *demo) installedSteps() []func(context.Context) error {
	return []func(context.Context) error{d.prepare, d.install, d.startProcesses, d.applyPackage, d.applySample, d.waitReady, d.killLeader, d.change, d.rollGood, d.rollBad, d.leave}
}

// install applies what operetta install and operetta rbac print.
func (d *demo) install(ctx context.Context) error {
	st := d.screen.Start("install")
	d.cluster = connect(d.plane.Kubectl(), d.plane.Kubeconfig(), d.plane.Dir())
	var err error
	if d.proxy, err = startChild(func(string) {}, d.plane.Kubectl(), d.cluster.proxy()...); err == nil {
		for _, command := range [][]string{{"install"}, {"rbac", "./" + packageDir}} {
			err = errors.Join(err, d.applyPrinted(ctx, append(command, "--packages-from-cluster")))
		}
	}
	st.End(err, "operetta install --packages-from-cluster | kubectl apply -f -")
	return err
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
	for range 2 {
		if err != nil {
			break
		}
		p := &process{}
		p.child, err = startChild(p.say(d.logLine), binary.Path, "run", "--packages-from-cluster", "--kubeconfig", kubeconfig,
			"--leader-elect", "--leader-elect-namespace", operatorNamespace)
		d.processes = append(d.processes, p)
	}
	if err == nil {
		d.operator = d.processes[0].child
		err = d.poll(ctx, d.timeout, "one of them to lead", func(ctx context.Context) (bool, error) {
			holder, err := d.leader(ctx)
			return holder != "" && (d.processes[0].leads.Load() || d.processes[1].leads.Load()), err
		})
	}
	st.End(err, "as "+operatorUser)
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

// applyPackage applies the package as an object, and waits until it is served.
func (d *demo) applyPackage(ctx context.Context) error {
	st := d.screen.Start("apply the package as an object")
	begin := time.Now()
	err := d.putPackage(ctx, "")
	if err == nil {
		err = d.poll(ctx, d.timeout, "the Package to be served", func(ctx context.Context) (bool, error) {
			var got packageObject
			err := d.cluster.get(ctx, packagePath, &got)
			return err == nil && got.ready(), err
		})
	}
	st.End(err, "Package "+packageName+" is served after "+screen.Seconds(time.Since(begin)))
	return err
}

// putPackage applies a Package with the files of a folder, and a text more if it is not "".
func (d *demo) putPackage(ctx context.Context, more string) error {
	files := map[string]string{}
	all, err := filepath.Glob(filepath.Join(packageDir, "*.cue"))
	if err != nil {
		return err
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if name := filepath.Base(file); !strings.HasSuffix(name, "_test.cue") {
			files[name] = string(text)
		}
	}
	if more != "" {
		files["revision.cue"] = more
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "operetta.dev/v1alpha1", "kind": "Package", "metadata": map[string]any{"name": packageName},
		"spec": map[string]any{"source": map[string]any{"inline": files}, "canary": canary},
	})
	if err != nil {
		return err
	}
	return d.applyText(ctx, "package.json", text)
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
		now, err := d.leader(ctx)
		return now != "" && now != was, err
	})
	st.End(err, "the other one leads after "+screen.Seconds(time.Since(begin)))
	return err
}

// change scales the sample, and waits until the process that is left has acted.
func (d *demo) change(ctx context.Context) error {
	st := d.screen.Start("scale " + d.subject())
	patch := `{"spec":{"replicas":5}}`
	_, err := d.cluster.run(ctx, "patch", d.sampled.Kind, d.sampled.Metadata.Name, "--namespace", d.sampled.Metadata.Namespace, "--type=merge", "-p", patch)
	if err == nil {
		err = d.poll(ctx, d.timeout, d.subject()+" to become Ready again", func(ctx context.Context) (bool, error) {
			v, err := d.fetchView(ctx)
			return err == nil && !v.absent && v.resource.ready(), err
		})
	}
	st.End(err, "kubectl patch "+d.subject()+" -p '"+patch+"'")
	return err
}

// leave deletes the sample and the Package, which goes when the sample is gone.
func (d *demo) leave(ctx context.Context) error {
	st := d.screen.Start("delete " + d.subject() + " and the Package")
	begin := time.Now()
	_, err := d.cluster.run(ctx, "delete", "package", packageName, "--wait=false")
	if err == nil {
		_, err = d.cluster.run(ctx, "delete", d.sampled.Kind, d.sampled.Metadata.Name, "--namespace", d.sampled.Metadata.Namespace, "--wait=false")
	}
	if err == nil {
		err = d.poll(ctx, d.timeout, "the Package to go", func(ctx context.Context) (bool, error) {
			err := d.cluster.get(ctx, packagePath, &packageObject{})
			if errors.Is(err, errAbsent) {
				return true, nil
			}
			return false, err
		})
	}
	st.End(err, fmt.Sprintf("nothing is left after %s", screen.Seconds(time.Since(begin))))
	return err
}
