package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/vet"
	"operetta.dev/test/inline"
)

const root = "../../.."

func TestTheReferenceIsCurrent(t *testing.T) {
	want, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(output)))
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not current; run go generate ./test/docs", output)
	}
}

func TestAFieldWithoutADocCommentIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		reason, source, want string
	}{
		"Definition": {"a definition needs one", "#A: string\n", "#A has no doc comment"},
		"Field":      {"so does a field", "// #A is one.\n#A: {\n\tb: int\n}\n", "#A.b has no doc comment"},
		"Nested":     {"and one within a field", "// #A is one.\n#A: {\n\t// b is one.\n\tb: {\n\t\tc?: int\n\t}\n}\n", "#A.b.c has no doc comment"},
		"Hidden":     {"what is hidden is nobody's business", "// #A is one.\n#A: {\n\t_b: int\n}\n", ""},
		"Pattern":    {"a pattern is part of the type", "// #A is one.\n#A: {\n\t// b is one.\n\tb: [string]: int\n}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readFile("a.cue", "package a\n\n"+c.source)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (c.want == "") != (err == nil) || !strings.HasSuffix(got, c.want) {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestAMarkAboutNothingIsAnError(t *testing.T) {
	if err := checkMarks([]definition{{name: "#Controller"}}); err == nil {
		t.Error("there is no error about a field that does not exist")
	}
}

// uses are packages that use what is marked as not supported.
var uses = map[string]string{
	"#Controller.versions": "versions: {v1: {spec: {}, storage: true}, v2: spec: {}}",
	"#Version.convert":     "versions: v1: {spec: {}, convert: {}}",
}

func TestWhatIsMarkedAsNotSupportedIsRefused(t *testing.T) {
	if want, got := slices.Sorted(maps.Keys(notSupported)), slices.Sorted(maps.Keys(uses)); !slices.Equal(want, got) {
		t.Fatalf("marked are %v, and tried are %v", want, got)
	}
	for path, text := range uses {
		t.Run(path, func(t *testing.T) {
			faults, _, _ := vet.All(load(t, text), nil)
			refused := slices.ContainsFunc(faults, func(f fault.Fault) bool { return strings.HasSuffix(f.Message, " is not supported yet") })
			if !refused {
				t.Errorf("it is not refused, there are only %v", faults)
			}
		})
	}
}

// load loads a package with some lines.
func load(t *testing.T, lines string) *program.Program {
	t.Helper()
	text := `package a
import "operetta.dev/schemas/operator"
operator.#Controller
group: "example.com"
kind: "A"
` + lines + "\n"
	return inline.Program(t, text)
}
