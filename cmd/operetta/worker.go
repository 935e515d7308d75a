package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/check"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/program"
)

// CUE can be written that drives the evaluator into endless recursion or endless work.
// Go can neither interrupt the one nor survive the other, so a package that nobody has
// looked at yet is examined by a process that may die: this binary, started again as
// `operetta worker MODE DIR`, which answers with one finding in JSON. With a folder of the
// state behind that, it is about the version that is kept there.

const (
	// examineTimeout is how long a worker may think about one package. The largest
	// packages known take a second.
	examineTimeout = 30 * time.Second
	// workerStack is how deep a worker may recurse, in bytes. Honest packages stay
	// below a hundredth; Go's own limit of 1 GB takes the memory of the machine.
	workerStack = 128 << 20
)

// What a worker does with a package besides compiling it.
const (
	examineCheck = "check" // the static check
	examineCRD   = "crd"   // the CustomResourceDefinition
	examineAll   = "all"   // both, and the complete Kubernetes types
)

// A finding is what a worker says about one package.
type finding struct {
	// Faults are what is wrong with the package.
	Faults program.Faults `json:"faults,omitempty"`
	// Edges are the dependencies between its components, under whichever condition.
	Edges []string `json:"edges,omitempty"`
	// Warnings are what is right and probably not meant.
	Warnings program.Faults `json:"warnings,omitempty"`
	// Kinds are the kinds of the objects that it renders, as far as they can be told.
	Kinds []schema.GroupKind `json:"kinds,omitempty"`
	// CRD is the CustomResourceDefinition, when it was asked for and there are no faults.
	CRD *apiextensionsv1.CustomResourceDefinition `json:"crd,omitempty"`
}

func newWorker(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    "worker {check|crd|all} DIR [STATE]",
		Short:  "Examine one package for another operetta process",
		Hidden: true,
		Args:   usage(cobra.RangeArgs(2, 3)),
		RunE: func(_ *cobra.Command, args []string) error {
			debug.SetMaxStack(workerStack)
			v := present
			if len(args) > 2 {
				v.stateDir = args[2]
			}
			return json.NewEncoder(s.out).Encode(examineHere(args[0], args[1], v))
		},
	}
}

// examineHere examines a version of the package in a folder in this process.
func examineHere(mode, dir string, v packageVersion) finding {
	f := examineLight(mode, dir, v)
	if mode == examineAll {
		f.Faults = append(f.Faults, typeFaults(dir, f.Faults)...).Sorted()
	}
	return f
}

// examineLight examines a package with the types that it runs with.
func examineLight(mode, dir string, v packageVersion) finding {
	_, p, err := loadVersion(dir, v)
	if err != nil {
		return finding{Faults: faultsOf(err)}
	}
	var f finding
	if mode != examineCRD {
		f.Faults, f.Warnings = check.All(p)
		f.Edges, f.Kinds = check.Dependencies(p), check.Kinds(p)
	}
	if mode != examineCheck {
		var err error
		definition := definitionOf(p.Name(), p.Reach(), p.Meta())
		f.CRD, err = crd.Generate(definition)
		if err == nil && mode == examineAll {
			err = refused(definition, f.CRD)
		}
		f.Faults = append(f.Faults, faultsOf(err)...)
	}
	if len(f.Faults) > 0 {
		f.CRD = nil
	}
	return f
}

// examine examines the package in a folder in a process of its own. It errors when that
// process dies or takes too long; what is wrong with the package is in the finding.
func examine(ctx context.Context, dir, mode string) (finding, error) {
	return examineVersion(ctx, dir, mode, present)
}

// examineVersion is examine for any version.
func examineVersion(ctx context.Context, dir, mode string, v packageVersion) (finding, error) {
	self, err := os.Executable()
	if err != nil {
		return finding{}, fmt.Errorf("package %s: finding the operetta binary: %w", dir, err)
	}
	return worker{program: self, timeout: examineTimeout, version: v}.run(ctx, dir, mode)
}

// A worker is a process that examines one package.
type worker struct {
	program string
	timeout time.Duration
	version packageVersion
}

// run starts the process and waits for its answer.
func (w worker) run(ctx context.Context, dir, mode string) (finding, error) {
	limited, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	args := []string{"worker", mode, dir}
	if w.version != present {
		args = append(args, w.version.stateDir)
	}
	cmd := exec.CommandContext(limited, w.program, args...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return finding{}, fmt.Errorf("package %s: %w", dir, ctx.Err())
	case limited.Err() != nil:
		return finding{}, fmt.Errorf("package %s: not understood within %s; does it ask for endless work?", dir, w.timeout)
	case err != nil:
		return finding{}, fmt.Errorf("package %s: CUE crashed on it: %s", dir, lastWords(complaint.String(), err))
	}
	var f finding
	if err := json.Unmarshal(out.Bytes(), &f); err != nil {
		return finding{}, fmt.Errorf("package %s: reading the worker's answer: %w", dir, err)
	}
	return f, nil
}

// lastWords returns why a process died, without Go's stack trace.
func lastWords(stderr string, err error) string {
	lines := bufio.NewScanner(strings.NewReader(stderr))
	for lines.Scan() {
		for _, prefix := range []string{"fatal error: ", "panic: ", "operetta: "} {
			words, ok := strings.CutPrefix(lines.Text(), prefix)
			if ok && words == "stack overflow" {
				return "endless recursion; is there a definition that contains itself?"
			}
			if ok {
				return words
			}
		}
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.String()
	}
	return err.Error()
}
