package crd_test

import (
	"errors"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/fault"
)

type column = apiextensionsv1.CustomResourceColumnDefinition

// compile returns a spec of one line.
func compile(t testing.TB, text string) cue.Value {
	t.Helper()
	v := cuecontext.New().CompileString(text, cue.Filename("spec.cue"))
	if err := v.Err(); err != nil {
		t.Fatal(err)
	}
	return v.LookupPath(cue.ParsePath("#Spec"))
}

// valid is a definition without faults, for the rows to change.
func valid(t testing.TB) crd.CustomResource {
	t.Helper()
	spec := compile(t, "#Spec: replicas: int | *1")
	return crd.CustomResource{
		Group: "example.com", Kind: "WebShop",
		Versions: []crd.Version{{Name: "v1", Spec: spec, Served: true, Storage: true}},
	}
}

func labels(c *apiextensionsv1.CustomResourceDefinition) any { return c.Labels }

func TestNamesAndVersionsOfTheCRD(t *testing.T) {
	t.Parallel()
	type names = apiextensionsv1.CustomResourceDefinitionNames
	cases := map[string]struct {
		reason string
		change func(*crd.CustomResource)
		want   func(*apiextensionsv1.CustomResourceDefinition) any
		is     any
	}{
		"NamesFromTheKind": {
			reason: "a kind is enough to name everything",
			want:   func(c *apiextensionsv1.CustomResourceDefinition) any { return c.Spec.Names },
			is:     names{Kind: "WebShop", ListKind: "WebShopList", Plural: "webshops", Singular: "webshop"},
		},
		"NamesOfTheAuthor": {
			reason: "what the author says is not overruled",
			change: func(d *crd.CustomResource) {
				d.Plural, d.Singular, d.ShortNames, d.Categories = "apps", "app", []string{"wa"}, []string{"all"}
			},
			want: func(c *apiextensionsv1.CustomResourceDefinition) any { return c.Spec.Names },
			is: names{
				Kind: "WebShop", ListKind: "WebShopList", Plural: "apps", Singular: "app",
				ShortNames: []string{"wa"}, Categories: []string{"all"},
			},
		},
		"PluralOfY":  {"a policy, two policies", kind("Policy"), objectName, "policies.example.com"},
		"PluralOfX":  {"client-go guesses so, and whoever wants boxes says so", kind("Box"), objectName, "boxs.example.com"},
		"PluralOfSS": {"an ingress, two ingresses", kind("Ingress"), objectName, "ingresses.example.com"},
		"ScopeByDefault": {
			reason: "a resource is in a namespace unless it says otherwise",
			want:   func(c *apiextensionsv1.CustomResourceDefinition) any { return c.Spec.Scope },
			is:     apiextensionsv1.NamespaceScoped,
		},
		"Scope": {
			reason: "a cluster-scoped resource is possible",
			change: func(d *crd.CustomResource) { d.Scope = apiextensionsv1.ClusterScoped },
			want:   func(c *apiextensionsv1.CustomResourceDefinition) any { return c.Spec.Scope },
			is:     apiextensionsv1.ClusterScoped,
		},
		"Description": {
			reason: "kubectl explain webshop says what the author says",
			change: func(d *crd.CustomResource) { d.Description = "A WebShop is a web server." },
			want:   func(c *apiextensionsv1.CustomResourceDefinition) any { return rootOf(c).Description },
			is:     "A WebShop is a web server.",
		},
		"Package": {
			reason: "a process without the package finds its resources by the label",
			change: func(d *crd.CustomResource) { d.Package = "webshop" },
			want:   labels,
			is:     map[string]string{"operetta.dev/package": "webshop"},
		},
		"PackageWhoseNameIsNoLabel": {
			reason: "a folder may have any name",
			change: func(d *crd.CustomResource) { d.Package = "my shop" },
			want:   labels,
			is:     map[string]string{"operetta.dev/package": ""},
		},
		"NoPackage": {
			reason: "there is nothing to say",
			want:   labels,
			is:     map[string]string(nil),
		},
		"SpecMayBeLeftOut": {
			reason: "all of the spec has defaults",
			want: func(c *apiextensionsv1.CustomResourceDefinition) any {
				return []any{rootOf(c).Required, string(rootOf(c).Properties["spec"].Default.Raw)}
			},
			is: []any{[]string(nil), "{}"},
		},
		"SpecIsRequired": {
			reason: "a spec with a required field cannot be left out",
			change: func(d *crd.CustomResource) { d.Versions[0].Spec = compile(t, "#Spec: image!: string") },
			want:   func(c *apiextensionsv1.CustomResourceDefinition) any { return rootOf(c).Required },
			is:     []string{"spec"},
		},
		"ColumnsOfTheAuthorAreBeforeAge": {
			reason: "every resource begins and ends alike in kubectl get",
			change: func(d *crd.CustomResource) {
				d.Versions[0].PrinterColumns = []column{{Name: "Replicas", Type: "integer", JSONPath: ".spec.replicas"}}
			},
			want: func(c *apiextensionsv1.CustomResourceDefinition) any {
				var all []string
				for _, col := range c.Spec.Versions[0].AdditionalPrinterColumns {
					all = append(all, col.Name+"="+col.JSONPath)
				}
				return all
			},
			is: []string{
				`Ready=.status.conditions[?(@.type=="Ready")].status`, "Phase=.status.phase",
				"Components=.status.componentsReady", "Replicas=.spec.replicas", "Age=.metadata.creationTimestamp",
			},
		},
		"SeveralVersions": {
			reason: "versions keep their order and their warnings, and are not served without conversion",
			change: func(d *crd.CustomResource) {
				d.Versions = append(d.Versions, crd.Version{
					Name: "v1beta1", Spec: compile(t, "#Spec: size: string"), Served: true, Deprecated: "use v1",
				})
			},
			want: func(c *apiextensionsv1.CustomResourceDefinition) any {
				var all []any
				for _, v := range c.Spec.Versions {
					all = append(all, v.Name, v.Served, v.Storage, v.Deprecated, v.DeprecationWarning)
				}
				return all
			},
			is: []any{"v1", true, true, false, (*string)(nil), "v1beta1", false, false, true, new("use v1")},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			def := valid(t)
			if c.change != nil {
				c.change(&def)
			}
			got, err := crd.Generate(def)
			if err != nil {
				t.Fatalf("%s\n%v", c.reason, err)
			}
			if err := conform.Check(got); err != nil {
				t.Errorf("%s\n%v", c.reason, err)
			}
			if diff := cmp.Diff(c.is, c.want(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func kind(k string) func(*crd.CustomResource) { return func(d *crd.CustomResource) { d.Kind = k } }

func objectName(c *apiextensionsv1.CustomResourceDefinition) any { return c.Name }

func rootOf(c *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return c.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func TestWhatIsWrongWithADefinition(t *testing.T) {
	t.Parallel()
	own := func(c column) func(*crd.CustomResource) {
		return func(d *crd.CustomResource) { d.Versions[0].PrinterColumns = []column{c} }
	}
	cases := map[string]struct {
		reason string
		change func(*crd.CustomResource)
		want   string // a line that begins so
	}{
		"NoGroup":         {"a group is required", func(d *crd.CustomResource) { d.Group = "" }, `group: "": `},
		"GroupOfOneWord":  {"the API server demands a domain", func(d *crd.CustomResource) { d.Group = "web" }, `group: "web": a group must be a domain that you own`},
		"GroupOfOthers":   {"the API server demands an approval", func(d *crd.CustomResource) { d.Group = "apps.k8s.io" }, `group: "apps.k8s.io": the Kubernetes project`},
		"NoKind":          {"a kind is required", kind(""), `kind: "": `},
		"KindWithDash":    {"a kind is one word", kind("Web_App"), `kind: "Web_App": `},
		"ShortName":       {"short names are lower case", func(d *crd.CustomResource) { d.ShortNames = []string{"WA"} }, `names: "WA": `},
		"Scope":           {"there are two scopes", func(d *crd.CustomResource) { d.Scope = "Galaxy" }, `scope: "Galaxy": unknown scope (write`},
		"NoVersion":       {"a version is required", func(d *crd.CustomResource) { d.Versions = nil }, "versions: there is no version (write"},
		"NoStorage":       {"one version is stored", func(d *crd.CustomResource) { d.Versions[0].Storage = false }, "versions: 0 versions are the storage version [] (write"},
		"VersionTwice":    {"versions are told apart by name", func(d *crd.CustomResource) { d.Versions = append(d.Versions, d.Versions[0]) }, "versions.v1: the version is declared twice"},
		"VersionName":     {"a version is a label", func(d *crd.CustomResource) { d.Versions[0].Name = "V 1" }, `versions.V 1: "V 1": `},
		"NoSpec":          {"a spec is required", func(d *crd.CustomResource) { d.Versions[0].Spec = cue.Value{} }, "versions.v1.spec: there is no spec"},
		"ColumnTwice":     {"two columns of one name confuse", own(column{Name: "Age", Type: "date", JSONPath: ".spec"}), `versions.v1.printerColumns: "Age": there is already a column`},
		"ColumnUnnamed":   {"a column has a title", own(column{Type: "date", JSONPath: ".spec"}), `versions.v1.printerColumns: "": a column must have a name`},
		"ColumnPath":      {"kubectl's paths begin with a dot", own(column{Name: "A", Type: "string", JSONPath: "spec.a"}), `versions.v1.printerColumns: "A": a jsonPath must begin with a dot`},
		"ColumnOfNothing": {"a typo would show as an empty column", own(column{Name: "A", Type: "string", JSONPath: ".spec.replica"}), `versions.v1.printerColumns: "A": there is no field .spec.replica`},
		"ColumnType":      {"there are five types", own(column{Name: "A", Type: "int", JSONPath: ".spec.a"}), `versions.v1.printerColumns: "A": unknown type int (write`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			def := valid(t)
			c.change(&def)
			got, err := crd.Generate(def)
			var faults fault.Faults
			if got != nil || !errors.As(err, &faults) {
				t.Fatalf("%s\n%v %v", c.reason, got, err)
			}
			if !strings.Contains("\n"+err.Error(), "\n"+c.want) {
				t.Errorf("%s\nwant %s\ngot  %v", c.reason, c.want, err)
			}
		})
	}
}

func TestAllFaultsOfAllVersionsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	def := valid(t)
	def.Group = "web"
	shared := compile(t, "#Shared: {a: _, b: float}\n#Spec: {c: null, one: #Shared, two: #Shared, three: #Shared}")
	def.Versions = []crd.Version{{Name: "v1", Spec: shared, Storage: true}, {Name: "v2", Spec: shared}}
	_, err := crd.Generate(def)
	var all fault.Faults
	if !errors.As(err, &all) {
		t.Fatalf("%v", err)
	}
	type where struct {
		Path   string
		Line   int
		Others string
	}
	var got []where
	for _, f := range all {
		_, others, _ := strings.Cut(f.Message, "(as at ")
		got = append(got, where{f.Path, f.Position.Line, others})
	}
	want := []where{
		{"group", 0, ""},
		{"versions.v1.spec.one.a", 1, "versions.v1.spec.two.a and 4 more paths)"},
		{"versions.v1.spec.one.b", 1, "versions.v1.spec.two.b and 4 more paths)"},
		{"versions.v1.spec.c", 2, "versions.v2.spec.c)"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheCommentOfSpecComesFromWhereTheStructIs(t *testing.T) {
	t.Parallel()
	const contract = "package p\n#Version: {\n\t// spec is the schema of spec.\n\tspec!: _\n}\nversions: [string]: #Version\n"
	cases := map[string]struct {
		reason, own, want string
	}{
		"OfTheDefinition": {"the contract's comment is about specs in general", "// A #Spec is this.\n#Spec: {a: int}\nversions: v1: spec: #Spec", "A #Spec is this."},
		"OfTheField":      {"a struct without a definition has the comment of its field", "versions: v1: {\n\t// spec is this.\n\tspec: {a: int}\n}", "spec is this."},
		"None":            {"no comment is better than a wrong one", "versions: v1: spec: {a: int}", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			instance := build.NewContext().NewInstance("p", nil)
			for file, text := range map[string]string{"contract.cue": contract, "own.cue": "package p\n" + c.own} {
				syntax, err := parser.ParseFile(file, text, parser.ParseComments)
				if err != nil {
					t.Fatal(err)
				}
				if err := instance.AddSyntax(syntax); err != nil {
					t.Fatal(err)
				}
			}
			def := valid(t)
			def.Versions[0].Spec = cuecontext.New().BuildInstance(instance).LookupPath(cue.ParsePath("versions.v1.spec"))
			got, err := crd.Generate(def)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, rootOf(got).Properties["spec"].Description); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestTheManifestIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	var first []byte
	for range 20 {
		def := valid(t)
		def.Versions[0].Spec = compile(t, `#Spec: {b: {d: int, c!: string}, a: [string]: {z: int, y: "q" | "p"}, labels: {x: 1, w: 2}}`)
		got, err := crd.Generate(def)
		if err != nil {
			t.Fatal(err)
		}
		text, err := crd.YAML(got)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = text
		}
		if diff := cmp.Diff(string(first), string(text)); diff != "" {
			t.Fatalf("(-first +this):\n%s", diff)
		}
	}
}

func TestYAMLKeepsLargeIntegersAndHasNoStatus(t *testing.T) {
	t.Parallel()
	def := valid(t)
	def.Versions[0].Spec = compile(t, `#Spec: big: int | *9007199254740993`)
	got, err := crd.Generate(def)
	if err != nil {
		t.Fatal(err)
	}
	got.ObjectMeta.CreationTimestamp = metav1.Time{}
	text, err := crd.YAML(got)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "default: 9007199254740993\n") {
		t.Error("a float64 would have rounded the default")
	}
	for _, absent := range []string{"\nstatus:", "creationTimestamp: null"} {
		if strings.Contains(string(text), absent) {
			t.Errorf("%s is for the API server to write", absent)
		}
	}
}
