package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/check"
	"operetta.dev/engine/fault"
)

// TestWhatIsKnownIsNotFoundAgain: the host of the first component is found each time, as nobody knows of it.
func TestWhatIsKnownIsNotFoundAgain(t *testing.T) {
	t.Parallel()
	const (
		misspelled = `components: web: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web", dat: x: "y"}`
		twice      = `components: web: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name}`
		own        = `components: web: {when: live.web.cm.data.x == "y", objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "web"}}`
		beside     = `components: web: objects: other: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "other"}`
		host       = "components.config.objects.configmap.data.host"
	)
	at := func(line int, path string) fault.Faults {
		return fault.Faults{{Position: fault.Position{File: "shop/shop.cue", Line: line}, Path: path, Message: "it is known"}}
	}
	for name, row := range map[string]struct {
		reason string
		more   string
		known  fault.Faults
		want   []string
	}{
		"NothingIsKnown":           {"both are found", misspelled, nil, []string{host, "components.web"}},
		"AMisspelledField":         {"the API server refuses nothing but the field", misspelled, at(20, "components.web.objects.cm.dat"), []string{host}},
		"BesideAnObject":           {"the other object is written, and is no refusal", misspelled + "\n" + beside, at(20, "components.web.objects.cm.dat"), []string{host}},
		"OfATemplate":              {"another component with the template is known", misspelled, at(20, "components.other.objects.cm.dat"), []string{host}},
		"OneOfTwoFields":           {"the other field is still to be found", misspelled + "\ncomponents: web: objects: cm: imutable: true", at(20, "components.web.objects.cm.dat"), []string{host, "components.web"}},
		"AnotherField":             {"another field of the object is known", misspelled, at(20, "components.web.objects.cm.data"), []string{host, "components.web"}},
		"AnObjectTwice":            {"it is one object of the two", twice, at(20, "components.web.objects.cm"), []string{host}},
		"AnObjectTwiceElsewhere":   {"the known fault is about a third object", twice, at(21, "components.third.objects.cm"), []string{host, "components.web", "components.config"}},
		"AWaitForItself":           {"the predicate of the component is known", own, at(20, "components.web.when"), []string{host}},
		"AWaitAtALine":             {"the line of the predicate is known, without a path", own, at(20, ""), []string{host}},
		"AWaitForAnotherReason":    {"a fault elsewhere explains nothing", own, at(8, "group"), []string{host, "components.web"}},
		"AFieldThatIsFoundAnyway":  {"the same field at the same line", "", at(18, host), nil},
		"AFieldOfTheSameComponent": {"another field of the component is no excuse", "", at(17, "components.config.objects.configmap.metadata"), []string{host}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := largePackage(t, "hosts: [...string]", ", host: cr.spec.hosts[0]", row.more)
			var told []string
			report, err := check.Run(t.Context(), p, check.Options{Known: row.known, Found: func(c check.Counterexample) { told = append(told, c.Fault.Path) }})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range report.Counterexamples {
				got = append(got, c.Fault.Path)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
			if len(told) > len(got) {
				t.Errorf("%s: it told of %v", row.reason, told)
			}
			if report.Undecided > 0 && name != "AnObjectTwiceElsewhere" {
				t.Errorf("%s: what is known does not depend on a cluster: %s", row.reason, report)
			}
		})
	}
}
