package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/check"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/testcase"
	"operetta.dev/engine/vet"
	"operetta.dev/engine/worker"
)

// A package can drive the CUE evaluator into endless recursion or an endless loop. A Go program
// cannot survive the first and cannot interrupt the second, so a new package is first examined by a
// worker process, which may die: this binary, started again as `operetta worker MODE MEMORY TIME SCOPES EXTRA`. The
// worker gets the files of the package on its standard input, reads no files itself, and answers
// with one finding in JSON. The parent then loads the same snapshot that the worker examined.

// The modes of a worker: what it does with a package besides compiling it.
const (
	examineCheck = "check" // the static check
	examineCRD   = "crd"   // the CustomResourceDefinition
	examineAll   = "all"   // both, and the complete Kubernetes types
	// examineReport is examineAll and what does not translate to a template.
	examineReport = "report"
	// examineRights is examineAll and the kinds that the package uses, from which permissions follow.
	examineRights = "rights"
	// examineTest runs the tests of the package.
	examineTest = "test"
	// examineCases runs the package for many resources in memory.
	examineCases = "cases"
	// examineSample is examineCRD and the simplest custom resource.
	examineSample = "sample"
	// examineExplore takes the steps of tests under many schedules.
	examineExplore = "explore"
)

// A finding is the result of examining one package.
type finding struct {
	// Digest is the digest of the files that were examined.
	Digest string `json:"digest"`
	// Faults are the faults of the package.
	Faults fault.Faults `json:"faults,omitempty"`
	// Unevaluated is true if nothing can be evaluated because of them.
	Unevaluated bool `json:"unevaluated,omitempty"`
	// Edges are the dependencies between its components, including conditional ones.
	Edges []string `json:"edges,omitempty"`
	// Warnings point at code that is valid but probably a mistake.
	Warnings fault.Faults `json:"warnings,omitempty"`
	// Untranslated is what is evaluated by CUE, or by a template for each value.
	Untranslated fault.Faults `json:"untranslated,omitempty"`
	// Tests are the results of the tests of the package.
	Tests []testcase.Result `json:"tests,omitempty"`
	// Covered are what the package can do, and whether the tests have seen it.
	Covered []testcase.Point `json:"covered,omitempty"`
	// Explored are the tests under many schedules, if the mode asks for it.
	Explored []testcase.Exploration `json:"explored,omitempty"`
	// Check is what the package does for many resources, if the mode asks for it.
	Check *check.Report `json:"check,omitempty"`
	// unfinished is true if the process that made Check did not end by itself.
	unfinished bool
	// Unknown are questions about kinds that only a cluster knows.
	Unknown fault.Faults `json:"unknown,omitempty"`
	// Kinds are the kinds of the objects that it renders, as far as the source shows them.
	Kinds []schema.GroupKind `json:"kinds,omitempty"`
	// Uses are the kinds that it renders and reads in any of its branches, if the mode asks for them and
	// there are no faults.
	Uses vet.Uses `json:"uses,omitzero"`
	// CRD is the CustomResourceDefinition, if the mode asks for it and there are no faults.
	CRD *apiextensionsv1.CustomResourceDefinition `json:"crd,omitempty"`
	// Constraints are those of its specs, with who enforces them, if the mode is examineCRD.
	Constraints []crd.Constraint `json:"constraints,omitempty"`
	// Sample is the simplest custom resource, or Unmade why none can be made up, if the mode asks for it.
	Sample map[string]any `json:"sample,omitempty"`
	Unmade string         `json:"unmade,omitempty"`
	// Admission is what it says in general about requests.
	Admission program.Admission `json:"admission,omitzero"`
}

// maxFaults bounds how many faults and warnings of a package are reported.
const maxFaults = 1000

func newWorker(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:    "worker {check|crd|all|report|rights|test|sample|cases|explore} MEMORY TIME SCOPES [EXTRA]",
		Short:  "Examine one package for another operetta process",
		Hidden: true,
		Args:   usageArgs(cobra.RangeArgs(4, 5)),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := worker.ParseLimits(args[1], args[2])
			if err != nil {
				return usageError{err}
			}
			if err := worker.LimitProcess(l); err != nil {
				return err
			}
			snapshot, err := source.Receive(s.in)
			if err != nil {
				return err
			}
			go worker.ExitWithParent(s.in)
			switch args[0] {
			case examineCases:
				return runCases(s, snapshot, decodeScopes(args[3]), l, args[4:])
			case examineExplore:
				return runExplore(s, snapshot, l, args[4:])
			}
			return json.NewEncoder(s.out).Encode(examineInProcess(args[0], snapshot, decodeScopes(args[3]), tellProgress(s, unitChecks)))
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:   evaluateCommand + " MEMORY TIME",
		Short: "Evaluate packages for another operetta process",
		Args:  usageArgs(cobra.ExactArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := worker.ParseLimits(args[0], args[1])
			if err != nil {
				return usageError{err}
			}
			return worker.Serve(os.Stdin, os.Stdout, l) // other streams escape what is no text
		},
	})
	return cmd
}

// evaluateCommand is the command below worker that evaluates packages; see package worker.
const evaluateCommand = "evaluate"

// workerArgs returns the arguments of a worker.
func workerArgs(mode string, l worker.Limits, scopes vet.Scopes) []string {
	return append(append([]string{mode}, l.Arguments()...), encodeScopes(scopes))
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

// staticChecks is how many parts the check of a package in examineInProcess has.
const staticChecks = 4

// examineInProcess examines a package in this process, and tells how many of staticChecks are done.
func examineInProcess(mode string, snapshot *source.Snapshot, scopes vet.Scopes, tell func(done, all int)) finding {
	if mode == examineTest {
		return runTests(snapshot)
	}
	tell(0, staticChecks)
	p, faults, err := loadFaulty(snapshot)
	f := finding{Faults: append(faults, faultsOf(err)...)}
	if err == nil {
		e := vet.Examine(p, scopes)
		if len(faults) == 0 {
			f = examineLight(mode, p, e, tell)
		}
		if mode != examineCheck && mode != examineCRD && mode != examineSample {
			tell(staticChecks-1, staticChecks)
			f.Faults = append(f.Faults, e.Types(f.Faults)...).Sorted()
		}
	}
	f.Unevaluated = err != nil || len(faults) > 0
	f.Digest, f.Faults, f.Warnings = snapshot.Digest(), truncateFaults(f.Faults), truncateFaults(f.Warnings)
	return f
}

// examineLight examines a package with the light types of Kubernetes that it also runs with.
func examineLight(mode string, p *program.Program, e *vet.Examination, tell func(done, all int)) finding {
	f := finding{Admission: p.Admission()}
	if mode != examineCRD && mode != examineSample {
		tell(1, staticChecks)
		f.Faults, f.Warnings, f.Unknown = e.All()
		f.Edges, f.Kinds = e.Dependencies(), e.Kinds()
		tell(2, staticChecks)
		wrong, lost := check.RoundTrips(p)
		f.Faults, f.Warnings = append(f.Faults, wrong...).Sorted(), append(f.Warnings, lost...).Sorted()
	}
	if mode != examineCheck {
		var err error
		definition := crdDefinition(p.Name(), p.Reach(), p.Meta())
		var rules crd.Rules
		f.CRD, rules, err = crd.GenerateWithRules(definition)
		if err == nil {
			rules, err = crd.RemoveCostlyRules(definition, f.CRD, rules, conform.Errors)
		}
		if err == nil && mode == examineCRD {
			f.Constraints = crd.Constraints(definition, f.CRD, rules)
		}
		if err == nil && mode != examineCRD && mode != examineSample {
			err = conformanceFault(definition, f.CRD)
		}
		f.Faults = append(f.Faults, faultsOf(err)...)
	}
	if len(f.Faults) > 0 {
		f.CRD = nil
		return f
	}
	switch mode {
	case examineReport:
		f.Untranslated = truncateFaults(vet.Report(p))
	case examineRights:
		f.Uses, f.Faults = e.Uses()
	case examineSample:
		f.Sample, f.Unmade = check.SimplestResource(p)
	}
	return f
}

// loadFaulty compiles a package to examine it. It returns one that has faults together with them, so that more can be found,
// and errors if there is nothing to look at.
func loadFaulty(snapshot *source.Snapshot) (p *program.Program, faults fault.Faults, err error) {
	defer recoverCompiler(snapshot, &err)
	if p, faults, err = program.LoadFaulty(snapshot); err == nil {
		p, err = p.WithCheapEnumerations()
	}
	return p, faults, ofPackage(snapshot, err)
}

// compile compiles a package. It errors with its faults.
func compile(snapshot *source.Snapshot) (p *program.Program, err error) {
	defer recoverCompiler(snapshot, &err)
	p, err = program.Load(snapshot)
	return p, ofPackage(snapshot, err)
}

// recoverCompiler makes an error of a panic: the CUE compiler panics on a few inputs that it should refuse.
func recoverCompiler(snapshot *source.Snapshot, err *error) {
	if problem := recover(); problem != nil {
		*err = fmt.Errorf("package %s: the CUE compiler failed: %v", snapshot.Name(), problem)
	}
}

// ofPackage returns an error with the name of the package, unless it is faults, which have positions.
func ofPackage(snapshot *source.Snapshot, err error) error {
	if _, are := errors.AsType[fault.Faults](err); err == nil || are {
		return err
	}
	return fmt.Errorf("package %s: %w", snapshot.Name(), err)
}

// truncateFaults returns at most maxFaults faults, and one more that counts the others.
func truncateFaults(faults fault.Faults) fault.Faults {
	if len(faults) <= maxFaults {
		return faults
	}
	more := fault.Fault{Message: fmt.Sprintf("and %d more", len(faults)-maxFaults)}
	return append(faults[:maxFaults:maxFaults], more)
}
