package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/test/snapshot"
)

// dumpDeployed rolls the resources of a file out on a cluster in memory, by the first of some packages, and writes a
// dump that has what plans of all of them read: deployed DUMP FILE PACKAGE...
func dumpDeployed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: deployed DUMP FILE PACKAGE...")
	}
	ctx := context.Background()
	documents, err := readDocuments(ctx, ts.MkAbs(args[1]), nil)
	ts.Check(err)
	var objects []*unstructured.Unstructured
	for _, d := range documents {
		u := &unstructured.Unstructured{Object: d.object}
		if u.GetNamespace() == "" {
			u.SetNamespace("default")
		}
		objects = append(objects, u)
	}
	var programs []*program.Program
	for _, dir := range args[2:] {
		read, err := readPackage(ts.MkAbs(dir))
		ts.Check(err)
		p, err := compile(read)
		ts.Check(err)
		programs = append(programs, p)
	}
	on, err := snapshot.Serve(ctx, programs[0], objects...)
	ts.Check(err)
	first := programs[0]
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	r := plan.NewRecorder(on, first.Name(), first.GroupVersionKind(), now)
	for _, p := range programs {
		_, err := plan.Make(ctx, plan.Options{Cluster: r, New: plan.Version{Program: p}, Now: now})
		ts.Check(err)
	}
	file, err := os.Create(filepath.Clean(ts.MkAbs(args[0])))
	ts.Check(err)
	ts.Check(r.Dump().Write(file))
	ts.Check(file.Close())
}
