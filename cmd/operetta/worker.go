package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

// CUE can be written that drives the evaluator into endless recursion or endless work.
// Go can neither interrupt the one nor survive the other, so a package that nobody has
// looked at yet is examined by a process that may die: this binary, started again as
// `operetta worker MODE MEMORY SCOPES`. It gets the files of the package on its standard input, reads
// none itself, and answers with one finding in JSON. What it examined is then what is loaded.

// What a worker does with a package besides compiling it.
const (
	examineCheck = "check" // the static check
	examineCRD   = "crd"   // the CustomResourceDefinition
	examineAll   = "all"   // both, and the complete Kubernetes types
)

// A finding is what a worker says about one package.
type finding struct {
	// Digest is that of the files that were examined.
	Digest string `json:"digest"`
	// Faults are what is wrong with the package.
	Faults program.Faults `json:"faults,omitempty"`
	// Edges are the dependencies between its components, under whichever condition.
	Edges []string `json:"edges,omitempty"`
	// Warnings are what is right and probably not meant.
	Warnings program.Faults `json:"warnings,omitempty"`
	// Unknown are questions about kinds that only a cluster knows.
	Unknown program.Faults `json:"unknown,omitempty"`
	// Kinds are the kinds of the objects that it renders, as far as they can be told.
	Kinds []schema.GroupKind `json:"kinds,omitempty"`
	// CRD is the CustomResourceDefinition, when it was asked for and there are no faults.
	CRD *apiextensionsv1.CustomResourceDefinition `json:"crd,omitempty"`
}

// maxFaults bounds how many faults and warnings of a package are told.
const maxFaults = 1000

func newWorker(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    "worker {check|crd|all} MEMORY SCOPES",
		Short:  "Examine one package for another operetta process",
		Hidden: true,
		Args:   usage(cobra.ExactArgs(3)),
		RunE: func(_ *cobra.Command, args []string) error {
			memory, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return usageError{fmt.Errorf("%q is no number of bytes", args[1])}
			}
			if err := limitSelf(memory); err != nil {
				return err
			}
			snapshot, err := source.Receive(s.in)
			if err != nil {
				return err
			}
			go endWith(s.in)
			return json.NewEncoder(s.out).Encode(examineHere(args[0], snapshot, decodeScopes(args[2])))
		},
	}
}

// encodeScopes returns scopes as an argument of a worker.
func encodeScopes(scopes vet.Scopes) string {
	var out []string
	for kind, scope := range scopes {
		out = append(out, kind.String()+"="+string(scope))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// decodeScopes returns the scopes that encodeScopes has made an argument of.
func decodeScopes(text string) vet.Scopes {
	out := vet.Scopes{}
	for part := range strings.SplitSeq(text, ",") {
		if kind, scope, ok := strings.Cut(part, "="); ok {
			out[schema.ParseGroupKind(kind)] = cluster.Scope(scope)
		}
	}
	return out
}

// endWith ends this process when the one that started it does, which closes the pipe: nobody
// else would end a worker that never comes to an end by itself.
func endWith(in io.Reader) {
	_, _ = io.Copy(io.Discard, in)
	os.Exit(exitAlone)
}

// examineHere examines a package in this process.
func examineHere(mode string, snapshot *source.Snapshot, scopes vet.Scopes) finding {
	f := examineLight(mode, snapshot, scopes)
	if mode == examineAll {
		f.Faults = append(f.Faults, vet.Types(snapshot, f.Faults)...).Sorted()
	}
	f.Digest, f.Faults, f.Warnings = snapshot.Digest(), firstOf(f.Faults), firstOf(f.Warnings)
	return f
}

// examineLight examines a package with the types that it runs with.
func examineLight(mode string, snapshot *source.Snapshot, scopes vet.Scopes) finding {
	p, err := compile(snapshot)
	if err != nil {
		return finding{Faults: faultsOf(err)}
	}
	var f finding
	if mode != examineCRD {
		f.Faults, f.Warnings = vet.All(p, scopes)
		f.Unknown = vet.Unknown(p, scopes)
		f.Edges, f.Kinds = vet.Dependencies(p), vet.Kinds(p)
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

// compile compiles a package.
func compile(snapshot *source.Snapshot) (p *program.Program, err error) {
	// The CUE compiler panics on a few inputs that it should refuse.
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("package %s: the CUE compiler failed: %v", snapshot.Name(), problem)
		}
	}()
	p, err = program.Load(snapshot)
	if faults := (program.Faults)(nil); err != nil && !errors.As(err, &faults) {
		return nil, fmt.Errorf("package %s: %w", snapshot.Name(), err)
	}
	return p, err
}

// firstOf returns faults, and how many there are more, where there are very many.
func firstOf(faults program.Faults) program.Faults {
	if len(faults) <= maxFaults {
		return faults
	}
	more := program.Fault{Message: fmt.Sprintf("and %d more", len(faults)-maxFaults)}
	return append(faults[:maxFaults:maxFaults], more)
}
