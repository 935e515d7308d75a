package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/fault"
	"operetta.dev/test/machine"
)

// parseDocuments returns the documents of a text as on the standard input.
func parseDocuments(text string) ([]document, error) {
	return readDocuments(context.Background(), stdin, strings.NewReader(text))
}

func TestDocumentsKnowTheirLines(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		text   string
		want   map[string]int
	}{
		"One":           {"a file is a document", "id: a\n", map[string]int{"a": 1}},
		"Stream":        {"dashes begin a document", "id: a\n---\nid: b\n---\n# c\n\nid: c\n", map[string]int{"a": 1, "b": 3, "c": 5}},
		"Windows":       {"lines may end as they do there", "id: a\r\n---\r\nid: b\r\n", map[string]int{"a": 1, "b": 3}},
		"ByteOrderMark": {"some editors begin a file with a mark", "\ufeffid: a\n", map[string]int{"a": 1}},
		"SameLine":      {"a document may begin behind its dashes", "--- {id: a}\n--- # two\nid: b\n", map[string]int{"a": 1, "b": 2}},
		"NoDocument":    {"comments and null are nothing", "# x\n---\n---\nnull\n---\nid: a\n", map[string]int{"a": 6}},
		"NotASeparator": {"dashes are text where they do not begin a line", "id: a\nx: |\n  ---\n  y\nz: ----\n", map[string]int{"a": 1}},
		"JSONInARow":    {"jq prints values like this", "{\"id\": \"a\"}\n\n{\"id\":\n \"b\"} {\"id\": \"c\"}", map[string]int{"a": 1, "b": 3, "c": 4}},
		"JSONWithTabs":  {"tabs are blanks to JSON", "{\n\t\"id\": \"a\"\n}\n", map[string]int{"a": 1}},
		"FlowYAML":      {"braces may be YAML", "{id: a}\n", map[string]int{"a": 1}},
		"List":          {"a List is what it lists", "kind: PodList\nitems:\n- id: a\n- kind: List\n  items:\n  - id: b\n", map[string]int{"a": 3, "b": 4}},
		"JSONList":      {"kubectl prints this", "{\"kind\": \"List\", \"items\": [\n{\"id\": \"a\"},\n{\"id\": \"b\"}]}", map[string]int{"a": 2, "b": 3}},
		"EmptyList":     {"nothing was found", "kind: List\nitems: []\n", map[string]int{}},
		"NotAList":      {"items alone make no list", "id: a\nkind: Shelf\nitems: [{id: b}]\n", map[string]int{"a": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := parseDocuments(c.text)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, d := range documents {
				n, _ := d.object["id"].(string)
				got[n] = d.line
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestAFileOfManyObjectsIsReadInTime(t *testing.T) {
	machine.Serial(t)
	const item = "apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n"
	for name, c := range map[string]struct {
		reason, text        string
		documents, lastLine int
	}{
		"List":       {"kubectl get all prints one", "kind: List\nitems:\n" + strings.Repeat("- "+item, 5000), 5000, 3 + 3*4999},
		"Stream":     {"a chart renders many documents", strings.Repeat("---\n  "+item, 20_000), 20_000, 2 + 4*19_999},
		"JSONInARow": {"jq prints them", strings.Repeat("{\"kind\": \"ConfigMap\"}\n", 20_000), 20_000, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			machine.ExpectProcessorTime(t, 5*time.Second, func() {
				documents, err := parseDocuments(c.text)
				if err != nil || len(documents) != c.documents {
					t.Fatalf("%s: %d documents, want %d: %v", c.reason, len(documents), c.documents, err)
				}
				if got := documents[len(documents)-1].line; got != c.lastLine {
					t.Errorf("%s: the last one is in line %d, want %d", c.reason, got, c.lastLine)
				}
			})
		})
	}
}

func TestMalformedDocumentsAreFaultsWithALine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"Scanner":       {"a: 1\n---\nb: 1\nc: d: 2\n", "<stdin>:4: malformed YAML: mapping values are not allowed in this context"},
		"Parser":        {"a:\n    b: 1\n  c: 2\n", "<stdin>:3: malformed YAML: did not find expected key"},
		"EndOfFile":     {"a: [1,\nb: 2\n", "<stdin>:2: malformed YAML: did not find expected ',' or ']'"},
		"FirstLine":     {"a: b: c\n", "<stdin>:1: malformed YAML: mapping values are not allowed in this context"},
		"Anchor":        {"# x\n---\na: *b\n", "<stdin>:3: malformed YAML: unknown anchor 'b' referenced"},
		"TwiceTheKey":   {"a: 1\nb: 1\na: 1\n", `<stdin>:3: malformed YAML: key "a" already set in map`},
		"List":          {"- a\n", "<stdin>:1: a document is a map of fields, not a value of type array"},
		"Scalar":        {"a: 1\n---\nhello\n", "<stdin>:3: a document is a map of fields, not a value of type string"},
		"BehindJSON":    {"{\"a\": 1}\n}\n", "<stdin>:2: malformed JSON: invalid character '}' looking for beginning of value"},
		"BehindFlow":    {"{a: 1}\n{b: 1}\n", "<stdin>:2: malformed YAML: did not find expected <document start>"},
		"BehindTheDots": {"a: 1\n...\nb: 1\n", "<stdin>:3: malformed YAML: did not find expected <document start>"},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := parseDocuments(c.text)
			if err == nil {
				t.Fatalf("got %d documents, want an error", len(documents))
			}
			if err.Error() != c.want {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
		})
	}
}

func TestIntegersStayWhole(t *testing.T) {
	documents, err := parseDocuments("a: 9007199254740993\nb: 1.5\n")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": int64(9007199254740993), "b": 1.5}
	if diff := cmp.Diff(want, documents[0].object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestLineOfAField(t *testing.T) {
	documents, err := parseDocuments("x: 1\n---\nspec:\n  list:\n  - a: 1\n  - a: 2\n  \"a.b\": 3\n")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"spec":           3,
		"spec.list":      4,
		"spec.list.1":    6,
		"spec.list.1.a":  6,
		"spec.list.2":    4, // what is missing is missed by what is around it
		`spec."a.b"`:     7,
		"spec.missing.x": 3,
		"missing":        3,
		"spec.a.b":       3,
	} {
		if got := documents[1].lineOf(fault.SplitPath(path)...); got != want {
			t.Errorf("%s is in line %d, want %d", path, got, want)
		}
	}
}
