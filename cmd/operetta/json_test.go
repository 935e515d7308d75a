package main

import (
	"encoding"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/explain"
	"operetta.dev/engine/graph/picture"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/shadow"
	"operetta.dev/engine/why"
)

// TestEveryFieldOfJSONHasARow compares the tables of docs/json.md with what is printed.
func TestEveryFieldOfJSONHasARow(t *testing.T) {
	t.Parallel()
	for heading, row := range map[string]struct {
		reason string
		// of are the types, each below a path.
		of map[string]any
	}{
		"operetta vet":           {"faults have a table of their own", map[string]any{"packages": []vettedPackage{}, "": vettedFault{}}},
		"operetta run --dry-run": {"a line is a step", map[string]any{"": stepRecord{}}},
		"operetta crd --report":  {"it has no manifests", map[string]any{"": constraintsReport{}}},
		"operetta crd migrate":   {"scripts wait for it", map[string]any{"": migrated{}}},
		"operetta rbac --diff":   {"it is a list of these", map[string]any{"": plan.Permission{}}},
		"operetta init":          {"what was made", map[string]any{"": initialized{}}},
		"operetta import":        {"what was made", map[string]any{"": imported{}}},
		"operetta push":          {"what was pushed", map[string]any{"": pushed{}}},
		"operetta version":       {"what is compared in a report", map[string]any{"": versions{}}},
	} {
		var want []string
		for path, value := range row.of {
			want = append(want, fieldsOf(reflect.TypeOf(value), path)...)
		}
		slices.Sort(want)
		got := firstColumn(section(t, "../../docs/json.md", heading))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s (-printed +documented):\n%s", heading, row.reason, diff)
		}
	}
}

// TestEveryCommandWithJSONIsListed compares the first table of docs/json.md with the flags of the commands.
func TestEveryCommandWithJSONIsListed(t *testing.T) {
	t.Parallel()
	listed := firstColumn(section(t, "../../docs/json.md", "JSON output"))
	for i := range listed {
		listed[i], _, _ = strings.Cut(listed[i], " --") // some print JSON with another flag only
	}
	for _, cmd := range shownCommands(newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})) {
		flag := cmd.Flags().Lookup("output")
		if flag == nil {
			continue
		}
		if formats, ok := flag.Value.(*choice); !ok || !slices.Contains(formats.values, formatJSON) {
			continue
		}
		if name := strings.TrimPrefix(cmd.CommandPath(), "operetta "); !slices.Contains(listed, name) {
			t.Errorf("docs/json.md does not say what %s prints with -o json", name)
		}
	}
}

// TestEveryCommandPrintsJSON has the commands that need not, with the reasons.
func TestEveryCommandPrintsJSON(t *testing.T) {
	t.Parallel()
	without := map[string]string{
		"completion": "it is about other commands", "completion bash": "it prints a script", "completion fish": "it prints a script",
		"completion powershell": "it prints a script", "completion zsh": "it prints a script", "help": "it is for people",
		"new": "it is about another command", "dump": "it writes a file, which is JSON in an archive", "ui": "it serves pages",
	}
	root := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range shownCommands(root)[1:] {
		name := strings.TrimPrefix(cmd.CommandPath(), "operetta ")
		prints := false
		if flag := cmd.Flags().Lookup("output"); flag != nil {
			formats, ok := flag.Value.(*choice)
			prints = ok && slices.Contains(formats.values, formatJSON)
		}
		if _, excused := without[name]; prints == excused {
			t.Errorf("operetta %s: prints JSON: %t; need not: %t", name, prints, excused)
		}
	}
}

// TestEveryFieldOfJSONIsNamed looks for the fields in the pages whose tables have several of them in a row.
func TestEveryFieldOfJSONIsNamed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		file, heading string
		value         any
	}{
		"plan":         {"plan.md", "As JSON", plan.Plan{}},
		"explain":      {"explain.md", "In scripts", explain.Resource{}},
		"replay":       {"replay.md", "Replay", replayed{}},
		"test":         {"package-tests.md", "Tests of a package", testedPackage{}},
		"run --shadow": {"shadow.md", "In CI", shadow.Resource{}},
		"its summary":  {"shadow.md", "In CI", shadow.Summary{}},
		"why":          {"why.md", "In scripts", why.Answer{}},
		"graph":        {"graph.md", "In scripts", picture.Data{}},
	} {
		text := strings.Join(code.FindAllString(section(t, "../../docs/"+row.file, row.heading), -1), " ")
		for _, path := range fieldsOf(reflect.TypeOf(row.value), "") {
			field := strings.TrimSuffix(path[strings.LastIndex(path, ".")+1:], "[]")
			if !regexp.MustCompile(`\b` + field + `\b`).MatchString(text) {
				t.Errorf("%s: docs/%s does not name %s in %q", name, row.file, path, row.heading)
			}
		}
	}
}

var code = regexp.MustCompile("`[^`\n]+`")

// section returns a section of a page, up to the next one of its depth.
func section(t *testing.T, file, heading string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, found, ok := strings.Cut(string(text), "# "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", file, heading)
	}
	found, _, _ = strings.Cut(found, "\n## ")
	return found
}

// firstColumn returns what is in code in the first column of tables, sorted.
func firstColumn(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, c := range code.FindAllString(cells[1], -1) {
				out = append(out, strings.Trim(c, "`"))
			}
		}
	}
	slices.Sort(out)
	return out
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// fieldsOf returns the paths of all fields that a type has as JSON. A list of objects has [] behind its name. Those of a
// fault are left out: they have a table.
func fieldsOf(t reflect.Type, path string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice {
		switch elem := t.Elem(); {
		case elem.Kind() == reflect.Struct, elem.Kind() == reflect.Map:
			return append([]string{path + "[]"}, fieldsBelow(elem, path+"[].")...)
		}
	}
	out := fieldsBelow(t, strings.TrimPrefix(path+".", "."))
	if path != "" {
		out = append(out, path)
	}
	return out
}

// deepest is how deep the fields of a type are that has itself as a part.
const deepest = 8

// fieldsBelow returns the paths of the fields of a struct, each with a prefix.
func fieldsBelow(t reflect.Type, prefix string) []string {
	isText := t.Implements(marshaler) || t.Implements(textMarshaler)
	if t.Kind() != reflect.Struct || isText || t == reflect.TypeFor[vettedFault]() && prefix != "" {
		return nil
	}
	if strings.Count(prefix, ".") > deepest {
		return nil
	}
	var out, promoted []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for inner := range f.Type.Fields() {
				if tag, _, _ := strings.Cut(inner.Tag.Get("json"), ","); !shadowed(t, tag) {
					promoted = append(promoted, fieldsOf(inner.Type, prefix+tag)...)
				}
			}
		case name == "-" || !f.IsExported():
		case name == "":
			out = append(out, fieldsOf(f.Type, prefix+f.Name)...)
		default:
			out = append(out, fieldsOf(f.Type, prefix+name)...)
		}
	}
	return append(out, promoted...)
}

// shadowed reports whether a struct itself has a field with the name of one that it embeds.
func shadowed(t reflect.Type, name string) bool {
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && tag == name {
			return true
		}
	}
	return false
}
