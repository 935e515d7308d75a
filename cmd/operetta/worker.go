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
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

// A package can drive the CUE evaluator into endless recursion or an endless loop. A Go program
// cannot survive the first and cannot interrupt the second, so a new package is first examined by a
// worker process, which may die: this binary, started again as `operetta worker MODE MEMORY TIME SCOPES`. The
// worker gets the files of the package on its standard input, reads no files itself, and answers
// with one finding in JSON. The parent then loads the same snapshot that the worker examined.

// The modes of a worker: what it does with a package besides compiling it.
const (
	examineCheck = "check" // the static check
	examineCRD   = "crd"   // the CustomResourceDefinition
	examineAll   = "all"   // both, and the complete Kubernetes types
)

// A finding is the result of examining one package.
type finding struct {
	// Digest is the digest of the files that were examined.
	Digest string `json:"digest"`
	// Faults are the faults of the package.
	Faults fault.Faults `json:"faults,omitempty"`
	// Edges are the dependencies between its components, including conditional ones.
	Edges []string `json:"edges,omitempty"`
	// Warnings point at code that is valid but probably a mistake.
	Warnings fault.Faults `json:"warnings,omitempty"`
	// Unknown are questions about kinds that only a cluster knows.
	Unknown fault.Faults `json:"unknown,omitempty"`
	// Kinds are the kinds of the objects that it renders, as far as the source shows them.
	Kinds []schema.GroupKind `json:"kinds,omitempty"`
	// CRD is the CustomResourceDefinition, if the mode asks for it and there are no faults.
	CRD *apiextensionsv1.CustomResourceDefinition `json:"crd,omitempty"`
}

// maxFaults bounds how many faults and warnings of a package are reported.
const maxFaults = 1000

func newWorker(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    "worker {check|crd|all} MEMORY TIME SCOPES",
		Short:  "Examine one package for another operetta process",
		Hidden: true,
		Args:   usageArgs(cobra.ExactArgs(4)),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := decodeLimits(args[1], args[2])
			if err != nil {
				return usageError{err}
			}
			if err := limitProcess(l); err != nil {
				return err
			}
			snapshot, err := source.Receive(s.in)
			if err != nil {
				return err
			}
			go exitWithParent(s.in)
			return json.NewEncoder(s.out).Encode(examineInProcess(args[0], snapshot, decodeScopes(args[3])))
		},
	}
}

// workerArgs returns the arguments of a worker.
func workerArgs(mode string, l limits, scopes vet.Scopes) []string {
	return []string{mode, strconv.FormatInt(l.memory, 10), l.time.String(), encodeScopes(scopes)}
}

// decodeLimits returns the limits that workerArgs has made arguments of.
func decodeLimits(memory, processorTime string) (limits, error) {
	var l limits
	var err error
	if l.memory, err = strconv.ParseInt(memory, 10, 64); err != nil {
		return limits{}, fmt.Errorf("%q is not a number of bytes", memory)
	}
	if l.time, err = time.ParseDuration(processorTime); err != nil {
		return limits{}, fmt.Errorf("%q is not a duration", processorTime)
	}
	return l, nil
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

// exitWithParent ends this process when its parent ends, which closes the pipe. Without it, a worker
// in an endless loop would outlive a parent that was killed.
func exitWithParent(in io.Reader) {
	_, _ = io.Copy(io.Discard, in)
	os.Exit(exitOrphaned)
}

// examineInProcess examines a package in this process.
func examineInProcess(mode string, snapshot *source.Snapshot, scopes vet.Scopes) finding {
	f := examineLight(mode, snapshot, scopes)
	if mode == examineAll {
		f.Faults = append(f.Faults, vet.Types(snapshot, f.Faults)...).Sorted()
	}
	f.Digest, f.Faults, f.Warnings = snapshot.Digest(), truncateFaults(f.Faults), truncateFaults(f.Warnings)
	return f
}

// examineLight examines a package with the light types of Kubernetes that it also runs with.
func examineLight(mode string, snapshot *source.Snapshot, scopes vet.Scopes) finding {
	p, err := compile(snapshot)
	if err != nil {
		return finding{Faults: faultsOf(err)}
	}
	var f finding
	if mode != examineCRD {
		f.Faults, f.Warnings, f.Unknown = vet.All(p, scopes)
		f.Edges, f.Kinds = vet.Dependencies(p), vet.Kinds(p)
	}
	if mode != examineCheck {
		var err error
		definition := crdDefinition(p.Name(), p.Reach(), p.Meta())
		f.CRD, err = crd.Generate(definition)
		if err == nil && mode == examineAll {
			err = conformanceFault(definition, f.CRD)
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
	if faults := (fault.Faults)(nil); err != nil && !errors.As(err, &faults) {
		return nil, fmt.Errorf("package %s: %w", snapshot.Name(), err)
	}
	return p, err
}

// truncateFaults returns at most maxFaults faults, and one more that counts the others.
func truncateFaults(faults fault.Faults) fault.Faults {
	if len(faults) <= maxFaults {
		return faults
	}
	more := fault.Fault{Message: fmt.Sprintf("and %d more", len(faults)-maxFaults)}
	return append(faults[:maxFaults:maxFaults], more)
}
