package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/capsule"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/source"
	"operetta.dev/test/machine"
)

// A recordedPackage is a package that notes that it is evaluated, as that of a controller does.
type recordedPackage struct {
	*program.Program

	ctx context.Context //nolint:containedctx // one reconcile has it, and rollout.Evaluator takes none
}

// Evaluate implements rollout.Evaluator.
func (p recordedPackage) Evaluate(s program.Session) (program.Rollout, error) {
	capsule.Evaluated(p.ctx)
	return p.Program.Evaluate(s)
}

// recordFirst reconciles the resource of a file once on a cluster in memory, and writes the capsule of that:
// recorded CAPSULE FILE PACKAGE [OVERLAY...]. Paths in messages are those of an operator in the folder of the script.
func recordFirst(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	t.Helper()
	if neg || len(args) < 3 {
		ts.Fatalf("usage: recorded CAPSULE FILE PACKAGE [OVERLAY...]")
	}
	documents, err := readDocuments(t.Context(), ts.MkAbs(args[1]), nil)
	ts.Check(err)
	cr := &unstructured.Unstructured{Object: documents[0].object}
	var overlays []source.Overlay
	for _, dir := range args[3:] {
		files := map[string]string{}
		found, err := filepath.Glob(ts.MkAbs(dir) + "/*.cue")
		ts.Check(err)
		for _, file := range found {
			files[filepath.Base(file)] = ts.ReadFile(file)
		}
		o, err := source.NewOverlay(dir, files)
		ts.Check(err)
		overlays = append(overlays, o)
	}
	read, err := source.Loader{}.Folder(ts.MkAbs(args[2]))
	ts.Check(err)
	read, err = read.WithDisplayPrefix("").WithOverlays(overlays)
	ts.Check(err)
	p, err := program.Load(read)
	ts.Check(err)

	dir := ts.MkAbs(args[0] + ".d")
	r, err := capsule.NewRecorder(capsule.Options{Dir: dir, Decisions: 1, Bytes: 1 << 30, Log: logr.Discard()})
	ts.Check(err)
	m := memory.New()
	m.Serve(p.GroupVersionKind().GroupKind(), cluster.Namespaced)
	_, err = m.Put("person", cr)
	ts.Check(err)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go func() { _ = r.Start(ctx) }()
	on := r.Cluster(m)
	by := &reconcile.Reconciler{Kind: p.GroupVersionKind(), Resources: on, Cluster: on, Patches: on, Recorder: noEvents{}, Now: time.Now, Parallel: 1}
	key := types.NamespacedName{Namespace: cr.GetNamespace(), Name: cr.GetName()}
	ctx, reading := r.Begin(ctx)
	_, err = by.Reconcile(ctx, key, recordedPackage{p, ctx})
	r.End(reading, capsule.Step{Kind: by.Kind, Key: key, Err: err, Version: func(context.Context) plan.Version { return plan.Version{Program: p} }})
	machine.Eventually(t, "a capsule", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*", "*.capsule.json"))
		return len(found) == 1 && os.Rename(found[0], ts.MkAbs(args[0])) == nil
	})
}

// noEvents records no events.
type noEvents struct{}

func (noEvents) Record(*unstructured.Unstructured, rollout.Event) {}
