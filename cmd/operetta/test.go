package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/testcase"
	"operetta.dev/engine/vet"
)

const testLong = `Run the tests of packages: what a package decides about a custom resource.

Tests are in files of the package whose names end in _test.cue:

  package webapp

  tests: "the least that a user may write": {
  	given: cr: spec: image: "nginx"
  	want: objects: web: deployment: spec: replicas: 3
  }

given has the custom resource (cr), its live objects by component and object (live), objects of
others such as inputs (others), and the configuration of the operator (config). want has what the
next reconcile decides: objects, absent ones, edges between components, verdicts of conditions,
components with state, reason and message, the phase, fields of the status, and a pattern for the
error. Only what is written is compared. A value has to be the same, a constraint such as >=3 has to
hold, and of a list each element is compared.

A test can have steps: each changes the resource, an object or an input, the operator acts in a
cluster in memory, and want says what must exist then. faults makes the operator crash, or lose a
response.

  	steps: [
  		{want: ready: true},
  		{cr: spec: replicas: 5, want: {live: web: deployment: spec: replicas: 5, writes: updated: 1}},
  		{delete: true, want: gone: true},
  	]

With --explore, each test that passes is run again under many schedules: the operator crashes
after every write, a response is lost, a write is refused, the cache is stale, the next step
comes too early, controllers are slow. Each schedule must end in the same state. The first that
does not is printed with its events, and --schedule runs it again.

--coverage counts the components, objects, verdicts of conditions, hooks and choices of the spec
that the tests have seen, and with -v names those that they have not.

--update replaces the literals in the files of tests that want something else; constraints and the
content of Secrets stay as they are.

It is the decision that render prints and a reconcile makes. Nothing is written anywhere, and no
cluster is needed.

The default is every package in or below the current folder.`

func newTest(s streams) *cobra.Command {
	var o testOptions
	cmd := &cobra.Command{
		Use:   "test [packages]",
		Short: "Run the tests of packages",
		Long:  testLong,
		Example: `  operetta test
  operetta test -v ./cue/webapp
  operetta test --run "ingress|autoscal" ./cue/...
  operetta test --coverage -v ./cue/webapp
  operetta test --explore --run "rolled out" ./cue/webapp`,
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	addOverlayFlag(cmd)
	cmd.Flags().StringVar(&o.pattern, "run", "", "run only the tests whose names match this regular expression")
	cmd.Flags().StringVar(&o.junit, "junit", "", "file for the results in the format of JUnit, which CI systems read")
	cmd.Flags().BoolVar(&o.explore, "explore", false, "let the operator crash after each write, responses be lost and steps come too early, and see whether each test ends in the same state")
	cmd.Flags().BoolVar(&o.coverage, "coverage", false, "print how much of the package the tests have seen, and with -v what they have not")
	cmd.Flags().BoolVar(&o.update, "update", false, "write what is decided into the tests, where they want another literal")
	cmd.Flags().IntVar(&o.bound, "bound", testcase.DefaultSchedules, "number of schedules that each test is explored with at most")
	cmd.Flags().StringVar(&o.schedule, "schedule", "", "explore only the schedule of this name, as a failure prints it")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "print the tests that pass, too")
	outputFlag(cmd, &o.output, formatText, formatJSON)
	return cmd
}

// formatText is the output for people.
const formatText = "text"

// testOptions are the flags of `operetta test`.
type testOptions struct {
	pattern, output, junit string
	verbose                bool
	explore, coverage      bool
	update                 bool
	bound                  int
	schedule               string
}

// testedPackage is the results of the tests of one package.
type testedPackage struct {
	Package string `json:"package"`
	// Error says why the package could not be tested, or is "".
	Error string `json:"error,omitempty"`
	// Tests are the results. There are none beside an error.
	Tests []testcase.Result `json:"tests,omitempty"`
	// Covered are what the package can do, and whether the tests have seen it, if that was asked for.
	Covered []testcase.Point `json:"covered,omitempty"`
	// Explored are the tests under many schedules.
	Explored []testcase.Exploration `json:"explored,omitempty"`

	folder string
}

// run runs the tests of packages and prints what has failed.
func (o testOptions) run(ctx context.Context, s streams, args []string) error {
	pattern, err := regexp.Compile(o.pattern)
	if err != nil {
		return usageError{fmt.Errorf("--run: %w", err)}
	}
	if o.bound < 1 {
		return usageError{fmt.Errorf("--bound %d is not a number of schedules", o.bound)}
	}
	if o.schedule != "" && !o.explore {
		return usageError{errors.New("--schedule needs --explore")}
	}
	dirs, err := expand(args, "./...")
	if err != nil {
		return err
	}
	all, interrupted := o.testFolders(ctx, s, dirs, pattern)
	if o.junit != "" {
		if err := os.WriteFile(o.junit, junitOf(all), 0o644); err != nil {
			return err
		}
	}
	if o.output == formatJSON {
		err = printJSON(s.out, all)
	} else {
		o.print(s, all)
	}
	if err == nil && interrupted != nil {
		return interrupted
	}
	if err == nil && slices.ContainsFunc(all, testedPackage.failed) {
		return errReported
	}
	return err
}

// testFolders runs the tests of the packages in folders. If it is interrupted, it returns what was found until then, and
// errors with how far that was.
func (o testOptions) testFolders(ctx context.Context, s streams, dirs []string, pattern *regexp.Regexp) ([]testedPackage, error) {
	var all []testedPackage
	for i, dir := range dirs {
		tested, err := o.testFolder(ctx, s, dir, pattern)
		if err != nil && ctx.Err() != nil {
			until := fmt.Sprintf("%d of %s were tested", i, count(len(dirs), "package"))
			if len(tested.Tests) > 0 {
				until = fmt.Sprintf("%s was explored in %d of %s", dir, len(tested.Explored), count(len(tested.Tests)-len(tested.failedTests()), "test"))
			}
			tested.Package, tested.Error = cmp.Or(tested.Package, dir), "interrupted"
			return append(all, tested), errors.New("interrupted: " + until + ", and what was found until then is above")
		}
		if err != nil {
			printFaults(s.err, faultsOf(err))
			tested.Package, tested.Error = dir, err.Error() // tests that failed before they were explored are told, too
		}
		all = append(all, tested)
	}
	return all, nil
}

// testFolder runs the tests of the package in a folder, in a worker process, and explores those that pass. It
// errors with the faults of the package.
func (o testOptions) testFolder(ctx context.Context, s streams, dir string, pattern *regexp.Regexp) (testedPackage, error) {
	with := loader
	var err error
	if with.Definitions, err = vet.ModuleDefinitions(dir); err != nil {
		return testedPackage{}, err
	}
	snapshot, err := with.FolderWithTests(dir)
	if err != nil {
		return testedPackage{}, folderFault(dir, err)
	}
	out, err := o.runTests(ctx, snapshot, pattern)
	out.folder = dir
	if err == nil && o.update && out.failed() {
		notes := s.out
		if o.output == formatJSON {
			notes = s.err // the document is alone on the standard output
		}
		if changed, err := updateTests(notes, dir, out.Tests); err != nil || !changed {
			return out, err
		}
		o.update = false // what fails now has no value that could be replaced
		return o.testFolder(ctx, s, dir, pattern)
	}
	failed := out.failedTests()
	passed := len(out.Tests) - len(failed)
	if err != nil || !o.explore || passed == 0 {
		return out, err
	}
	bar := newProgress(s, dir)
	defer bar.end()
	request := exploreRequest{Pattern: o.pattern, Failed: failed, Bound: o.bound, Schedule: o.schedule}
	out.Explored, err = commandExaminer().explore(ctx, snapshot, request, passed, bar.tell)
	return out, err
}

// runTests runs the tests of a snapshot in a worker process. It errors with the faults of the package.
func (o testOptions) runTests(ctx context.Context, snapshot *source.Snapshot, pattern *regexp.Regexp) (testedPackage, error) {
	found, err := commandExaminer().examine(ctx, snapshot, examineTest)
	if err == nil {
		err = found.Faults.OrNil()
	}
	out := testedPackage{Package: snapshot.Name(), Tests: found.Tests}
	out.Tests = slices.DeleteFunc(out.Tests, func(r testcase.Result) bool { return !pattern.MatchString(r.Name) })
	if o.coverage {
		out.Covered = found.Covered
	}
	return out, err
}

// failed reports whether a test of the package has failed, or the package itself.
func (p testedPackage) failed() bool {
	return p.Error != "" || len(p.failedTests()) > 0 || slices.ContainsFunc(p.Explored, failedExploration)
}

// failedTests returns the names of the tests that have failed as they are written.
func (p testedPackage) failedTests() []string {
	var out []string
	for _, r := range p.Tests {
		if len(r.Differences) > 0 {
			out = append(out, r.Name)
		}
	}
	return out
}

// print prints the tests that have failed, and how many there are.
func (o testOptions) print(s streams, all []testedPackage) {
	passed, failed, untested := 0, 0, 0
	for _, p := range all {
		if p.Error != "" {
			untested++
		}
		for _, r := range p.Tests {
			if len(r.Differences) == 0 {
				passed++
			} else {
				failed++
			}
			o.printResult(s, p, r)
		}
		o.printExplored(s, p.folder, p)
		o.printCovered(s, p)
		if len(p.Tests) == 0 && p.Error == "" && o.pattern == "" && !o.explore {
			printLinef(s.err, "note: %s has no tests; they are in files whose names end in _test.cue", p.Package)
		}
	}
	printLinef(s.out, "%d passed, %d failed%s", passed, failed, map[bool]string{true: "; " + count(untested, "package") + " could not be tested"}[untested > 0])
	if o.explore {
		printLinef(s.out, "%s", exploredSummary(all))
		if untried := o.untriedSchedules(all); untried != "" {
			printLinef(s.out, "%s", untried)
		}
	}
	if passed+failed == 0 && o.pattern != "" {
		printLinef(s.err, "operetta: no test has a name that matches %q", o.pattern)
	}
}

// printResult prints a test that has failed, and one that has passed if everything is to be told.
func (o testOptions) printResult(s streams, p testedPackage, r testcase.Result) {
	if len(r.Differences) == 0 {
		if o.verbose {
			printLinef(s.out, "pass  %s  %s", p.Package, r.Name)
		}
		return
	}
	printLinef(s.out, "FAIL  %s  %s (%s)", p.Package, r.Name, r.Position)
	for _, d := range r.Differences {
		printLinef(s.out, "      %s", d)
	}
}

// printCovered prints how much of a package the tests have seen.
func (o testOptions) printCovered(s streams, p testedPackage) {
	if len(p.Covered) == 0 {
		return
	}
	var shares []string
	for _, kind := range testcase.PointKinds {
		if covered, all := testcase.CoverageOf(p.Covered, kind); all > 0 {
			shares = append(shares, fmt.Sprintf("%d of %d %s", covered, all, coveredNouns[kind]))
		}
	}
	printLinef(s.out, "%s: %s", p.Package, strings.Join(shares, ", "))
	for _, point := range p.Covered {
		if !point.Covered && o.verbose {
			printLinef(s.out, "never %s", testcase.Difference{Position: point.At, Message: point.String()})
		}
	}
}

// coveredNouns say what is counted of each kind.
var coveredNouns = map[testcase.PointKind]string{
	testcase.PointComponent: "components", testcase.PointObject: "objects", testcase.PointPredicate: "verdicts", testcase.PointHook: "hooks",
	testcase.PointBranch: "choices of the spec",
}

// runTests runs the tests of a package in this process.
func runTests(snapshot *source.Snapshot) finding {
	f := finding{Digest: snapshot.Digest()}
	p, tests, err := loadTests(snapshot)
	if err == nil {
		f.Tests, f.Covered, err = testcase.Run(context.Background(), p, tests)
	}
	f.Faults = truncateFaults(faultsOf(err))
	return f
}

// loadTests compiles a package and reads its tests. It errors with the faults of the package; those of a test are in it.
func loadTests(snapshot *source.Snapshot) (p *program.Program, tests []testcase.Test, err error) {
	defer recoverCompiler(snapshot, &err)
	p, tests, err = testcase.Load(snapshot)
	return p, tests, ofPackage(snapshot, err)
}
