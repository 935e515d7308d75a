package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
	"operetta.dev/engine/source"
	"operetta.dev/engine/testcase"
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
components with state, reason and message, fields of the status, and a pattern for the error.
Only what is written is compared. A value has to be the same, a constraint such as >=3 has to
hold, and of a list each element is compared.

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
  operetta test --run "ingress|autoscal" ./cue/...`,
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	cmd.Flags().StringVar(&o.pattern, "run", "", "run only the tests whose names match this regular expression")
	cmd.Flags().StringVar(&o.junit, "junit", "", "file for the results in the format of JUnit, which CI systems read")
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
}

// testedPackage is the results of the tests of one package.
type testedPackage struct {
	Package string `json:"package"`
	// Error says why the package could not be tested, or is "".
	Error string            `json:"error,omitempty"`
	Tests []testcase.Result `json:"tests"`
}

// run runs the tests of packages and prints what has failed.
func (o testOptions) run(ctx context.Context, s streams, args []string) error {
	pattern, err := regexp.Compile(o.pattern)
	if err != nil {
		return usageError{fmt.Errorf("--run: %w", err)}
	}
	dirs, err := expand(args, "./...")
	if err != nil {
		return err
	}
	var all []testedPackage
	for _, dir := range dirs {
		tested, err := testFolder(ctx, dir)
		if err != nil {
			printLinef(s.err, "%v", err)
			tested = testedPackage{Package: dir, Error: err.Error()}
		}
		tested.Tests = slices.DeleteFunc(tested.Tests, func(r testcase.Result) bool { return !pattern.MatchString(r.Name) })
		all = append(all, tested)
	}
	if o.junit != "" {
		if err := os.WriteFile(o.junit, junitOf(all), 0o644); err != nil {
			return err
		}
	}
	if o.output == formatJSON {
		err = json.NewEncoder(s.out).Encode(all)
	} else {
		o.print(s, all)
	}
	if err == nil && slices.ContainsFunc(all, testedPackage.failed) {
		return errReported
	}
	return err
}

// testFolder runs the tests of the package in a folder, in a worker process. It errors with the faults of the package.
func testFolder(ctx context.Context, dir string) (testedPackage, error) {
	snapshot, err := loader.FolderWithTests(dir)
	if err != nil {
		return testedPackage{}, folderFault(dir, err)
	}
	e, err := commandExaminer()
	if err != nil {
		return testedPackage{}, err
	}
	found, err := e.examine(ctx, snapshot, examineTest)
	if err == nil {
		err = found.Faults.OrNil()
	}
	return testedPackage{Package: snapshot.Name(), Tests: found.Tests}, err
}

// failed reports whether a test of the package has failed, or the package itself.
func (p testedPackage) failed() bool {
	return p.Error != "" || slices.ContainsFunc(p.Tests, func(r testcase.Result) bool { return len(r.Differences) > 0 })
}

// print prints the tests that have failed, and how many there are.
func (o testOptions) print(s streams, all []testedPackage) {
	passed, failed := 0, 0
	for _, p := range all {
		for _, r := range p.Tests {
			if len(r.Differences) == 0 {
				passed++
				if o.verbose {
					printLinef(s.out, "pass  %s  %s", p.Package, r.Name)
				}
				continue
			}
			failed++
			printLinef(s.out, "FAIL  %s  %s (%s)", p.Package, r.Name, r.Position)
			for _, d := range r.Differences {
				printLinef(s.out, "      %s", d)
			}
		}
	}
	printLinef(s.out, "%d passed, %d failed", passed, failed)
	if passed+failed == 0 && o.pattern != "" {
		printLinef(s.err, "operetta: no test has a name that matches %q", o.pattern)
	}
}

// runTests runs the tests of a package in this process.
func runTests(snapshot *source.Snapshot) finding {
	f := finding{Digest: snapshot.Digest()}
	withTests, err := compile(snapshot)
	if err != nil {
		f.Faults = faultsOf(err)
		return f
	}
	p, err := compile(snapshot.WithoutTests())
	if err == nil {
		f.Tests, err = testcase.Run(context.Background(), p, testcase.Read(withTests))
	}
	f.Faults = truncateFaults(faultsOf(err))
	return f
}
