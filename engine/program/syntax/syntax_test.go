package syntax_test

import (
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/parser"
	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/fault"
	"operetta.dev/engine/program/syntax"
)

// read returns what the text of a package of one file says.
func read(t *testing.T, text string) *syntax.Index {
	t.Helper()
	f, err := parser.ParseFile("shop.cue", "package shop\n"+text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return indexOf(f)
}

// indexOf returns what a file says that imports nothing.
func indexOf(f *ast.File) *syntax.Index {
	return syntax.ReadInstance(&build.Instance{Files: []*ast.File{f}})
}

// kinds are where the kind of the only object comes from, as kinds that are written out and
// references to what is not written, each with what is below it.
var kinds = map[string]struct {
	reason, text string
	want         []string
}{
	"written out": {
		"nothing else decides",
		`components: web: objects: o: kind: "Role"`, []string{"Role"},
	},
	"from the spec": {
		"the resource decides",
		`components: web: objects: o: kind: cr.spec.kind`, []string{"cr.spec.kind"},
	},
	"by two names for different things": {
		"both have to hold, so that either may decide",
		"_kind: cr.spec.kind\n_kind: config.kind\ncomponents: web: objects: o: kind: _kind", []string{"cr.spec.kind", "config.kind"},
	},
	"by a let of a comprehension": {
		"a let is another name",
		"components: web: objects: {for p in cr.spec.parts let k = p.kind {o: kind: k}}", []string{"cr.spec.parts +*.kind"},
	},
	"by a let of a struct": {
		"wherever it is",
		"components: web: objects: o: {let k = cr.spec.kind, kind: k}", []string{"cr.spec.kind"},
	},
	"by a parameter of a template": {
		"the template is given it where it is used",
		"#T: {#kind: string, kind: #kind}\ncomponents: web: objects: o: #T & {#kind: cr.spec.kind}", []string{"cr.spec.kind"},
	},
	"by an element that embeds": {
		"{x} in a list is x",
		`components: web: objects: o: kind: [{"Role"}][0]`, []string{"Role"},
	},
	"by the conjunction of a list": {
		"and makes one of all elements",
		`components: web: objects: o: and([cr.spec.object, {kind: "Role"}])`, []string{"Role", "cr.spec.object +kind"},
	},
	"by a function of another package with the name of one of lists": {
		"it makes something new",
		"import p \"example.com/p\"\ncomponents: web: objects: o: p.Take({kind: \"Role\", x: cr.spec.x}, 1)", []string{"cr.spec.x"},
	},
	"by the elements of joined lists": {
		"they are the same elements",
		"import \"list\"\ncomponents: web: objects: {for k in list.Concat([cr.spec.kinds, [\"Role\"]]) {o: kind: k}}", []string{"Role", "cr.spec.kinds +*"},
	},
	"by names that refer to each other": {
		"a circle leads nowhere",
		"_a: _b\n_b: _a\ncomponents: web: objects: o: kind: _a", nil,
	},
	"by a struct that grows by itself": {
		"it is cut",
		"_a: b: _a.b.c\ncomponents: web: objects: o: kind: _a.b", nil,
	},
}

func TestWhereAKindComesFrom(t *testing.T) {
	t.Parallel()
	for name, tc := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, _, _ := read(t, tc.text).SourceObjects()
			if len(objects) != 1 {
				t.Fatalf("%d objects, wanted one", len(objects))
			}
			got := objects[0].Kinds
			for _, o := range objects[0].ExternalSources("kind") {
				if o.Cut {
					continue
				}
				from := o.Reference.String()
				if len(o.Below) > 0 {
					from += " +" + strings.Join(o.Below, ".")
				}
				got = append(got, from)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWhatATemplateOfATemplateBringsIsShown(t *testing.T) {
	t.Parallel()
	x := read(t, "#B: shop: {web: {}, db: {}}\n#A: {#B}\ncomponents: {#A.shop}")
	if diff := cmp.Diff([]string{"web", "db"}, x.Components()); diff != "" {
		t.Errorf("the components (-want +got):\n%s", diff)
	}
}

func TestWhatHasNoPlaceInTheTextIsSelectedNowhere(t *testing.T) {
	t.Parallel()
	made := ast.NewStruct("web", ast.NewStruct("outputs", ast.NewStruct("x", ast.NewSel(ast.NewIdent("live"), "db", "o"))))
	x := indexOf(&ast.File{Decls: []ast.Decl{&ast.Field{Label: ast.NewIdent("components"), Value: made}}})
	if len(x.References()) != 1 {
		t.Fatalf("references %v, wanted one", x.References())
	}
	if got := x.SelectionsAt(fault.TokenPosition{}); got != nil {
		t.Errorf("a fault without a place is taken for one that awaits %v", got)
	}
}
