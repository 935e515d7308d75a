package check_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"operetta.dev/engine/check"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/test/golden"
)

// TestCheck checks the package of each golden file, and compares the findings with their resources.
func TestCheck(t *testing.T) {
	t.Parallel()
	golden.Run(t, "testdata/*.txtar", func(c *golden.Case) {
		s, err := source.Loader{}.Module("shop", "", "shop", c.FS("module"))
		if err != nil {
			c.Fatal(err)
		}
		p, err := program.Load(s)
		if err != nil {
			c.Fatalf("not a question of the check: %v", err)
		}
		report, err := check.Run(c.Context(), p, check.Options{})
		if err != nil {
			c.Fatal(err)
		}
		again, err := check.Run(c.Context(), p, check.Options{})
		if diff := cmp.Diff(report, again); err != nil || diff != "" {
			c.Errorf("the second time it says something else (-first +second):\n%s %v", diff, err)
		}
		for _, f := range report.Counterexamples {
			if f.Fault.Position.IsZero() {
				c.Errorf("it does not say where in the package that is: %s", f.Fault)
			}
		}
		c.Want("want", text(t, report))
	})
}

// text returns a report as it stands in a golden file.
func text(t *testing.T, r check.Report) string {
	t.Helper()
	out := &strings.Builder{}
	out.WriteString(r.String() + "\n")
	for _, f := range r.Counterexamples {
		out.WriteString(f.Fault.Error() + "\n")
		data, err := yaml.Marshal(f.Resource["spec"])
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			out.WriteString("  " + line)
		}
		for _, o := range f.Live {
			out.WriteString("  with this object:\n")
			data, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(withoutPace(string(data))) {
				out.WriteString("    " + line)
			}
		}
	}
	return out.String()
}

var (
	// restless matches the generation of an object that was written again and again until the check gave up.
	restless = regexp.MustCompile(`(?m)^  generation: \d{3,}$`)
	// pace matches what follows from how often that was: any change of the pace of a check changes it.
	pace = regexp.MustCompile(`(?m)^( *(?:generation|observedGeneration|resourceVersion|seen|operetta.dev/applied): ).*$`)
)

// withoutPace returns an object as text without what tells how often it was written, if that was often.
func withoutPace(text string) string {
	if !restless.MatchString(text) {
		return text
	}
	return pace.ReplaceAllString(text, "${1}(often)")
}
