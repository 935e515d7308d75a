package check_test

import (
	"path/filepath"
	"testing"
	"time"

	"operetta.dev/engine/check"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/vet"
	"operetta.dev/test/machine"
)

// reference is the package that the figures are about.
const reference = "cue/webapp"

// vetLimit is how long operetta vet may take with it.
const vetLimit = 2 * time.Second

// vetted does what operetta vet does with a package by default, but for the process of its own.
func vetted(t testing.TB, dir string) check.Report {
	t.Helper()
	s, err := source.Loader{}.Folder(filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	e := vet.Examine(p, nil)
	faults, _, _ := e.All()
	faults = append(faults, e.Types(faults)...)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	report, err := check.Run(t.Context(), p, check.Options{})
	if err != nil || len(report.Counterexamples) > 0 {
		t.Fatalf("%v, %v", report.Counterexamples, err)
	}
	return report
}

// TestVetOfTheReferenceTakesLessThanTwoSeconds is about processor time, and about how many resources are tried for it.
func TestVetOfTheReferenceTakesLessThanTwoSeconds(t *testing.T) {
	t.Parallel()
	var report check.Report
	machine.ExpectProcessorTime(t, vetLimit, func() { report = vetted(t, reference) })
	t.Logf("%s", report)
	if report.Cases < 20 || report.Untried > 0 {
		t.Errorf("too little was tried for a figure: %s", report)
	}
}

// BenchmarkVet is operetta vet of the reference package.
func BenchmarkVet(b *testing.B) {
	cases := 0
	defer machine.LimitProcessorTime(b, vetLimit)()
	for b.Loop() {
		cases = vetted(b, reference).Cases
	}
	b.ReportMetric(float64(cases), "resources")
}
