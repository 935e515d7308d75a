package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
