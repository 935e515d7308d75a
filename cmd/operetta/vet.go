package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/check"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
)

const vetLong = `Check packages without a cluster. The checks are:

  - the package compiles, and every name that it refers to exists;
  - dependencies have no cycle, and no two objects have the same identity;
  - every predicate can be decided;
  - objects have the fields, required fields and enum values of their kind, if the package
    gives them the type of a stable Kubernetes API, as in appsv1.#Deployment & {...}, and
    those of custom kinds whose CRD is given with -f or --crds, or is in the folder crds of
    the module; so do the fields that the package reads of live objects and inputs;
  - a user of the custom resource cannot choose what only its author may choose, such as
    a ServiceAccount;
  - the API server would accept the CustomResourceDefinition, including its CEL rules;
  - specs of each version, made up from its schema, are the same when they were converted to
    the neighbour of that version and back, unless the package says what gets lost;
  - the package works for many resources: each value of an enumeration and of a boolean, the
    bounds of numbers, fields that are left out, lists and maps without, with one and with two
    elements, and with the numbers of elements that the package names; in all combinations or,
    if these are more than --bound, in pairs. For each of them, a rollout in memory has to
    render without faults, become ready, come to rest, and lead back when the spec changes and
    changes back. If one value of an enumeration or a boolean is all that keeps a resource
    from becoming ready, that is a warning. The objects of inputs are made up as well: absent,
    and with the values that the package compares what it reads with.

The last check is not a proof: it tries the branches of the schema, not every value. It says how
many of the branches and of their pairs it has tried. Each fault is followed by the
smallest resource that shows it, for operetta render -f, and the objects that it needs, for
--live. Ctrl-C ends the check and prints what it has found so far.

Each fault is one line: file:line, the path of the field, what is wrong, and what to write
instead. A warning points at code that is valid but probably a mistake: the content of a
Secret is copied to a status or to an object that is no Secret, or a user decides how long
an evaluation runs, as in list.Range over a number without a maximum. There is also a warning
for a kind that is not built in and whose CRD is not given: nobody can tell here
whether it is namespaced. Warnings fail the command only with --strict.

The default is every package in or below the current folder.`

const vetExample = `  operetta vet
  operetta vet ./cue/webapp
  operetta vet -q ./cue/... && git commit

  # For CI: fail on warnings, too, and try more resources
  operetta vet --strict --bound 500 ./cue/...

  # A package with thousands of fields or values may need more time
  operetta vet --timeout 5m ./large

  # Check the fields of custom kinds as well
  operetta vet --crds ./definitions ./cue/webapp

  # Print the dependencies, each with its condition
  operetta vet --edges ./cue/webapp

  # Print what costs an evaluation by CUE
  operetta vet --report ./cue/webapp`

func newVet(s streams) *cobra.Command {
	var v vetOptions
	cmd := &cobra.Command{
		Use:               "vet [packages]",
		Short:             "Check packages and print their faults",
		Long:              vetLong,
		Example:           vetExample,
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.run(cmd.Context(), s, args)
		},
	}
	addOverlayFlag(cmd)
	cmd.Flags().BoolVarP(&v.quiet, "quiet", "q", false, "print only faults")
	cmd.Flags().BoolVar(&v.strict, "strict", false, "fail on warnings, too")
	cmd.Flags().BoolVar(&v.edges, "edges", false, "print the dependencies, each with its condition")
	cmd.Flags().BoolVar(&v.report, "report", false, "print what is not evaluated by a compiled template, or by one for each value, and how to write it")
	cmd.Flags().IntVar(&v.bound, "bound", check.DefaultBound, "number of resources that each package is tried with at most; 0 is none")
	cmd.Flags().DurationVar(&v.timeout, "timeout", 0, "how much processor time the check of each package may take, such as 5m (default 30s, and for the check with resources at least 2s for each of the --bound)")
	outputFlag(cmd, &v.output, formatText, formatJSON)
	cmd.Flags().StringArrayVarP(&v.files, "filename", "f", nil, "file with CRDs of kinds that the packages render or read; - is standard input")
	cmd.Flags().StringArrayVar(&v.crds, "crds", nil, "`folder` with files of such CRDs, beside the folder crds of the packages' module (repeatable)")
	must(cmd.MarkFlagDirname("crds"))
	completeManifests(cmd, "filename")
	return cmd
}

// vetOptions are the flags of `operetta vet`.
type vetOptions struct {
	quiet, edges, strict, report bool
	// bound is how many resources each package is tried with at most.
	bound int
	files []string
	// crds are folders of CustomResourceDefinitions.
	crds   []string
	output string
	// timeout is how much processor time the check of a package may take, or 0.
	timeout time.Duration
}

// mode is how packages are examined.
func (v vetOptions) mode() string {
	if v.report {
		return examineReport
	}
	return examineAll
}

// definitions returns the scopes and the types of the kinds whose definitions are in the files, and in the folders crds
// of the packages' modules.
func (v vetOptions) definitions(ctx context.Context, s streams, dirs []string) (vet.Scopes, map[string]string, error) {
	files, err := v.definitionFiles(dirs)
	if err != nil {
		return nil, nil, err
	}
	scopes, types, defines := vet.Scopes{}, map[string]string{}, map[string]bool{}
	for _, file := range files {
		all, err := readDocuments(ctx, file, s.in)
		if err != nil {
			return nil, nil, err
		}
		for _, definition := range definitionsIn(all) {
			kind, scope, _ := cluster.DefinedBy(definition)
			scopes[kind], defines[filepath.Dir(file)] = scope, true
			of, err := vet.CustomKinds(definition)
			if err != nil { // the API server may know better
				printLinef(s.err, "note: %s: not all fields of %s are checked: %v", shownName(file), kind, err)
			}
			maps.Copy(types, of)
		}
	}
	for _, dir := range v.crds {
		if !defines[filepath.Clean(dir)] {
			printLinef(s.err, "note: %s: no file of this folder has a CustomResourceDefinition", dir)
		}
	}
	return scopes, types, nil
}

// definitionFiles returns the files that may have definitions.
func (v vetOptions) definitionFiles(dirs []string) ([]string, error) {
	out := slices.Clone(v.files)
	for _, dir := range v.crds {
		files, err := source.ManifestFiles(dir)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	own, err := source.DefinitionFiles(dirs)
	return append(out, own...), err
}

// run checks packages and prints their faults and warnings.
func (v vetOptions) run(ctx context.Context, s streams, args []string) error {
	if v.bound < 0 {
		return usageError{fmt.Errorf("--bound %d is not a number of resources", v.bound)}
	}
	if v.timeout < 0 {
		return usageError{fmt.Errorf("--timeout %s is no time", v.timeout)}
	}
	commandExaminer().allow(v.timeout)
	dirs, err := expand(args, "./...")
	if err != nil {
		return err
	}
	scopes, types, err := v.definitions(ctx, s, dirs)
	if err != nil {
		return err
	}
	loader.Kinds = types
	findings, err := (&examination{s, v.mode(), "--timeout allows more time"}).together(ctx, inFolders(dirs), scopes)
	if err == nil {
		err = v.tryCases(ctx, s, dirs, findings, scopes)
	}
	if ctx.Err() != nil {
		return v.interrupted(s, dirs, findings)
	}
	if err != nil {
		return err
	}
	faults, warnings := 0, 0
	for _, found := range findings {
		faults += len(found.Faults) + len(found.report().Counterexamples)
		warnings += len(found.Warnings) + len(found.Unknown) + len(found.report().Unready)
	}
	if v.quiet && !v.strict {
		warnings = 0
	}
	if err := v.print(s, dirs, findings); err != nil {
		return err
	}
	if !v.quiet && v.output == formatText {
		printLinef(s.out, "%s", summary(len(dirs), faults, warnings))
	}
	if faults > 0 || v.strict && warnings > 0 {
		return errReported
	}
	return nil
}

// report is what the package does for many resources, or the zero value if it was not tried.
func (f finding) report() check.Report {
	if f.Check == nil {
		return check.Report{}
	}
	return *f.Check
}

// reached returns the resource that leads to a fault that was found without resources, if one was found.
func (f finding) reached(known fault.Fault) (check.Counterexample, bool) {
	all := f.report().Reached
	at := slices.IndexFunc(all, func(c check.Counterexample) bool { return c.Fault == known })
	if at < 0 {
		return check.Counterexample{}, false
	}
	return all[at], true
}

// tryCases tries each package that can be evaluated with many resources, and adds what it finds.
func (v vetOptions) tryCases(ctx context.Context, s streams, dirs []string, findings []finding, scopes vet.Scopes) error {
	for i, dir := range dirs {
		if v.bound == 0 {
			continue
		}
		if findings[i].Unevaluated {
			findings[i].Check = &check.Report{Unmade: notEvaluated}
			continue
		}
		known := findings[i].Faults
		snapshot, err := readPackage(dir)
		if err != nil {
			return err
		}
		bar := newProgress(s, dir)
		report, err := commandExaminer().cases(ctx, snapshot, caseRequest{v.bound, known}, scopes, bar.tell)
		bar.end()
		findings[i].Check = &report
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && len(known) > 0: // it may be because of them
			report.Unmade = unfinished(err).Message
		case err != nil:
			findings[i].Faults, findings[i].unfinished = append(findings[i].Faults, unfinished(err)), true
		case report.Untried > 0:
			findings[i].Warnings = append(findings[i].Warnings, untried(dir, report, snapshot))
		case report.Rejected != nil && len(report.Counterexamples) == 0 && len(known) == 0:
			findings[i].Warnings = append(findings[i].Warnings, noneReady(report))
		}
	}
	return nil
}

// interrupted prints what was found until somebody had enough of waiting, and errors with how far that was.
func (v vetOptions) interrupted(s streams, dirs []string, findings []finding) error {
	if err := v.print(s, dirs, findings); err != nil {
		return err
	}
	until := fmt.Sprintf("%d of %s were checked, and tried with no resources", len(findings), count(len(dirs), "package"))
	for i, found := range findings {
		if c := found.Check; c != nil {
			until = fmt.Sprintf("%s was tried with %d of %d resources", dirs[i], c.Cases, c.Cases+c.Untried)
		}
	}
	return errors.New("interrupted: " + until + ", and what was found until then is above")
}

// print prints what was found.
func (v vetOptions) print(s streams, dirs []string, findings []finding) error {
	if v.output == formatJSON {
		return printJSON(s.out, vetted(dirs, findings))
	}
	for i, found := range findings { // if it was interrupted, there are fewer of them
		if err := v.printFinding(s, dirs[i], found); err != nil {
			return err
		}
	}
	return nil
}

// printKnown prints what was found without resources, each with a resource that leads to it. One that leads to several in a row is printed once.
func (v vetOptions) printKnown(s streams, found finding) error {
	var last check.Counterexample
	for _, f := range found.Faults {
		printFaults(s.err, fault.Faults{f})
		c, is := found.reached(f)
		switch {
		case !is:
		case reflect.DeepEqual(c.Resource, last.Resource) && reflect.DeepEqual(c.Live, last.Live):
			printLinef(s.err, "  # this resource leads there, too")
		default:
			if err := printCase(s.err, leadToReached, c); err != nil {
				return err
			}
			last = c
		}
	}
	return nil
}

// printFinding prints what was found in one folder.
func (v vetOptions) printFinding(s streams, dir string, found finding) error {
	if err := v.printKnown(s, found); err != nil {
		return err
	}
	for _, f := range found.report().Counterexamples {
		printFaults(s.err, fault.Faults{f.Fault})
		if err := printCase(s.err, leadToCase, f); err != nil {
			return err
		}
	}
	if v.edges {
		for _, e := range found.Edges {
			printLinef(s.out, "%s", e)
		}
	}
	for _, f := range found.Untranslated {
		printLinef(s.out, "%s", f.Error())
	}
	if !v.quiet || v.strict {
		printWarnings(s.err, slices.Concat(found.Warnings, found.Unknown))
		if err := printUnready(s.err, found); err != nil {
			return err
		}
	}
	if found.Check != nil {
		v.printCheck(s, dir, found)
	}
	return nil
}

// printCheck prints how a package was checked with resources.
func (v vetOptions) printCheck(s streams, dir string, found finding) {
	if !v.quiet {
		for _, part := range found.Check.Parts {
			printLinef(s.out, "%s: %s", dir, part)
		}
	}
	if c := found.Check; found.unfinished || c.Choices == 0 && c.Untried > 0 {
		return // a worker that did not end has not said how far it was
	}
	if !v.quiet {
		printLinef(s.out, "%s: %s", dir, found.Check)
	}
}

// An examination is how packages are examined.
type examination struct {
	streams streams
	mode    string
	// exceeded is the hint for a package that has exceeded a limit, or "".
	exceeded string
}

// together examines packages. It errors if the context ends, and then returns the findings about the packages until then.
// One that renders a kind which another of them defines is
// examined again, because its author has no other definition to give.
func (e *examination) together(ctx context.Context, all []subject, scopes vet.Scopes) ([]finding, error) {
	findings, defined := make([]finding, len(all)), maps.Clone(scopes)
	for i, one := range all {
		if findings[i] = e.of(ctx, one, scopes); ctx.Err() != nil {
			return findings[:i], ctx.Err()
		}
		if def := findings[i].CRD; def != nil {
			defined[schema.GroupKind{Group: def.Spec.Group, Kind: def.Spec.Names.Kind}] = cluster.Scope(def.Spec.Scope)
		}
	}
	for i, one := range all {
		isNew := func(k schema.GroupKind) bool { return defined[k] != scopes[k] }
		if len(findings[i].Unknown) > 0 && slices.ContainsFunc(findings[i].Kinds, isNew) {
			again := e.of(ctx, one, defined)
			if ctx.Err() != nil {
				return findings, ctx.Err()
			}
			findings[i] = again
		}
	}
	return findings, ctx.Err()
}

// of examines a package. If the worker has died, its error is the only fault.
func (e *examination) of(ctx context.Context, one subject, scopes vet.Scopes) finding {
	bar := newProgress(e.streams, one.name)
	defer bar.end()
	found, err := one.examine(ctx, e.mode, scopes, bar.tell)
	found.Unevaluated = found.Unevaluated || err != nil
	faults := faultsOf(err)
	if _, is := errors.AsType[*exceededError](err); is {
		faults = fault.Faults{{Message: err.Error(), Hint: e.exceeded}}
	}
	found.Faults = append(found.Faults, faults...)
	return found
}

// summary returns the numbers of packages, faults and warnings.
func summary(packages, faults, warnings int) string {
	text := count(packages, "package") + ", " + count(faults, "fault")
	if warnings > 0 {
		text += ", " + count(warnings, "warning")
	}
	return text
}

// printWarnings prints one warning a line.
func printWarnings(w io.Writer, warnings fault.Faults) {
	for _, f := range warnings {
		printLinef(w, "%s: warning: %s", f.Position, fault.Fault{Path: f.Path, Message: f.Message, Hint: f.Hint}.Error())
	}
}

// printUnready prints the values with which a resource does not become ready, each as a warning with the resource.
func printUnready(w io.Writer, found finding) error {
	for _, u := range found.report().Unready {
		printWarnings(w, fault.Faults{u.Fault})
		if err := printCase(w, leadToUnready, u); err != nil {
			return err
		}
	}
	return nil
}

// conformanceFault returns why an API server would reject the CustomResourceDefinition of a package,
// or nil. It runs the validation code of the API server, without a server.
func conformanceFault(def crd.CustomResource, generated *apiextensionsv1.CustomResourceDefinition) error {
	errs, err := conform.Errors(generated)
	if err != nil {
		return err
	}
	return crd.LocateErrors(def, errs)
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
