package program_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
)

// versioned is a package with a chain of three versions and a branch: v1alpha1 - v1beta1 - v1 - v2.
const versioned = `package shop

import (
	"list"
	"strings"
	"operetta.dev/schemas/operator"
)

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: {spec: #Spec, storage: true}
cr: spec: #Spec
#Spec: {rooms: {count: int & <=100 | *2, names?: [string]: string}, secret?: string & strings.MaxRunes(12)}

versions: v1beta1: {
	spec: #Beta
	convert: v1: {
		to: {given: #Beta, spec: {rooms: {count: given.count, if given.names != _|_ {names: given.names}}, if given.secret != _|_ {secret: given.secret}}}
		from: {given: #Spec, spec: {count: given.rooms.count, if given.rooms.names != _|_ {names: given.rooms.names}, if given.secret != _|_ {secret: given.secret}}}
	}
}
#Beta: {count: int | *2, names?: [string]: string, secret?: string}

versions: v1alpha1: {
	spec: #Alpha
	deprecated: "use v1"
	convert: v1beta1: {
		to: {given: #Alpha, spec: count: strings.Count(given.size, "x")}
		from: {given: #Beta, spec: size: strings.Join(list.Repeat(["x"], given.count), "")}
		lossy: "nobody had names then"
	}
}
#Alpha: size!: string

versions: v2: {
	spec: #Two
	convert: v1: {
		to: {given: #Two, spec: rooms: count: given.floors * 2}
		from: {given: #Spec, spec: floors: div(given.rooms.count, 2)}
	}
}
#Two: floors!: int
`

func TestASpecIsConvertedAlongTheVersions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, from, to, spec, want string }{
		"Neighbour":      {"a version has a conversion to its neighbour", "v1beta1", "v1", `{count: 5}`, `{rooms: {count: 5}}`},
		"Back":           {"and from it", "v1", "v1beta1", `{rooms: {count: 5, names: {a: b}}}`, `{count: 5, names: {a: b}}`},
		"Chain":          {"the way to the storage version goes over neighbours", "v1alpha1", "v1", `{size: xxx}`, `{rooms: {count: 3}}`},
		"ChainBack":      {"and back again", "v1", "v1alpha1", `{rooms: {count: 1}}`, `{size: x}`},
		"Across":         {"versions on different branches meet at the storage version", "v1alpha1", "v2", `{size: xxxx}`, `{floors: 2}`},
		"NotAllTheWay":   {"versions on one branch do not pass the storage version, whose limit is lower", "v1alpha1", "v1beta1", `{size: ` + strings.Repeat("x", 101) + `}`, `{count: 101}`},
		"Same":           {"a version is itself", "v1", "v1", `{rooms: {count: 7}}`, `{rooms: {count: 7}}`},
		"Defaults":       {"what the given version has defaults for is given", "v1beta1", "v1", `{}`, `{rooms: {count: 2}}`},
		"DefaultsOfBoth": {"the result has the defaults of its version", "v1", "v1beta1", `{rooms: {}}`, `{count: 2}`},
		"WholeFloat":     {"JSON does not tell 3.0 from 3", "v1beta1", "v1", `{count: 3.0}`, `{rooms: {count: 3}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var spec, want map[string]any
			inline.Decode(t, tc.spec, &spec)
			inline.Decode(t, tc.want, &want)
			p := inline.Program(t, versioned)
			for range 2 { // the first one leaves nothing behind
				got, err := p.Conversions().Convert(spec, tc.from, tc.to)
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func TestAConversionFailsWithoutQuotingTheSpec(t *testing.T) {
	t.Parallel()
	const secret = "opensesame-and-more"
	for name, tc := range map[string]struct {
		reason, from, to string
		spec             any
		want             []string
	}{
		"Target":   {"what becomes of it has to be valid", "v1beta1", "v1", map[string]any{"count": int64(101)}, []string{"spec.rooms.count", "101"}},
		"Given":    {"what is given has to be valid", "v1", "v1beta1", map[string]any{"rooms": map[string]any{"count": "many"}}, []string{"spec.rooms.count"}},
		"Secret":   {"a text may belong to a Secret", "v1beta1", "v1", map[string]any{"secret": secret}, []string{"spec.secret"}},
		"Missing":  {"a required field is not made up", "v1alpha1", "v1", map[string]any{}, []string{"spec.size"}},
		"NoStruct": {"whoever connects may send anything", "v1beta1", "v1", "spec", []string{"struct"}},
		"Unknown":  {"a version that is gone", "v1", "v3", map[string]any{}, []string{"v3"}},
		"Huge":     {"a spec has the limits of a resource", "v1beta1", "v1", map[string]any{"names": map[string]any{"a": strings.Repeat("a", 1<<20)}}, []string{"may have 262144"}},
		"Growing":  {"and so has what becomes of it", "v1", "v1alpha1", map[string]any{"rooms": map[string]any{"count": int64(1 << 20)}}, []string{"spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := inline.Program(t, versioned).Conversions().Convert(tc.spec, tc.from, tc.to)
			if err == nil {
				t.Fatalf("%s: it was converted", tc.reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q is missing in %v", tc.reason, want, err)
				}
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestVersionsThatCannotBeConvertedAreFaults(t *testing.T) {
	t.Parallel()
	const both = `{to: {given: #Spec, spec: given}, from: {given: #Spec, spec: given}}`
	for name, tc := range map[string]struct{ reason, versions, want string }{
		"Missing":    {"without a conversion the API server would take one spec for another", `versions: {v1: storage: true, v2: spec: #Spec}`, "shop/shop.cue:13: versions.v2.convert: it says nothing of how"},
		"TwoStorage": {"one version is stored", `versions: {v1: storage: true, v2: {spec: #Spec, storage: true}}`, "versions: 2 versions are the storage version"},
		"NoStorage":  {"one version is stored", `versions: v2: spec: #Spec`, "versions: 0 versions are the storage version"},
		"Unknown":    {"a name may be misspelled", `versions: {v1: storage: true, v2: {spec: #Spec, convert: v3: ` + both + `}}`, "shop/shop.cue:13: versions.v2.convert.v3: there is no other version v3 (did you mean v1?)"},
		"Itself":     {"a version leads nowhere by itself", `versions: {v1: storage: true, v2: {spec: #Spec, convert: v2: ` + both + `}}`, "versions.v2.convert.v2: there is no other version v2"},
		"Circle":     {"versions that lead to each other lead nowhere", `versions: {v1: storage: true, v2: {spec: #Spec, convert: v3: ` + both + `}, v3: {spec: #Spec, convert: v2: ` + both + `}}`, "versions.v2.convert.v3: the conversions do not lead to the storage version"},
		"Two":        {"two ways could have two answers", `versions: {v1: storage: true, v2: {spec: #Spec, convert: {v1: ` + both + `, v3: ` + both + `}}, v3: {spec: #Spec, convert: v1: ` + both + `}}`, "versions.v2.convert: it has more than one neighbour: v1, v3"},
		"Storage":    {"the storage version is where all others lead", `versions: {v1: {storage: true, convert: v2: ` + both + `}, v2: {spec: #Spec, convert: v1: ` + both + `}}`, "versions.v1.convert: the storage version is converted by the other versions"},
		"Unserved":   {"the operator reads the storage version", `versions: {v1: {storage: true, served: false}, v2: {spec: #Spec, convert: v1: ` + both + `}}`, "versions.v1.served: the storage version is not served"},
		"Status":     {"the status has one shape", `versions: {v1: storage: true, v2: {spec: #Spec, status: {a: 1}, convert: v1: ` + both + `}}`, "versions.v2.status: the status is not converted"},
		"CR":         {"a conversion has no resource but what it is given", `versions: {v1: storage: true, v2: {spec: #Spec, convert: v1: {to: {given: #Spec, spec: cr.spec}, from: {given: #Spec, spec: given}}}}`, "shop/shop.cue:13: versions.v2.convert.v1.to.spec: a conversion is given nothing but a spec, and this refers to cr.spec"},
		"Live":       {"nor any object", `versions: {v1: storage: true, v2: {spec: #Spec, convert: v1: {to: {given: #Spec, spec: given}, from: {given: #Spec, spec: {if live.web.deployment.spec.replicas > 1 {}}}}}}`, "versions.v2.convert.v1.from.spec: a conversion is given nothing but a spec, and this refers to live.web"},
		"Config": {"nor a config", `versions: {v1: storage: true, v2: {spec: #Spec, convert: v1: {to: {given: #Spec, spec: given}, from: {given: #Spec, spec: {if config.big {}}}}}}
config: big: bool | *false`, "refers to config"},
		"Misspelled": {"the contract is closed", `versions: {v1: storage: true, v2: {spec: #Spec, convert: v1: ` + strings.Replace(both, "from:", "form:", 1) + `}}`, "versions.v2.convert.v1.form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := program.Load(inline.Snapshot(t, head+tc.versions))
			faults, are := err.(fault.Faults) //nolint:errorlint // that is what Load returns
			if !are {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if !strings.Contains(faults.Error(), tc.want) {
				t.Errorf("%s: %q is missing in:\n%v", tc.reason, tc.want, faults)
			}
		})
	}
}

// TestManyConversionsSayWhatConversionsDo converts with and without the parts of a package that have nothing to do with it.
func TestManyConversionsSayWhatConversionsDo(t *testing.T) {
	t.Parallel()
	const components = `
components: web: objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.metadata.name, data: limit: "1"}
status: rooms: cr.spec.rooms.count
`
	for name, tc := range map[string]struct{ reason, more string }{
		"Nothing":  {"there are only versions", ""},
		"Beside":   {"what is rendered has nothing to do with conversions, which may not refer to it", components + `_label: components.web.objects.cm.metadata.name`},
		"Helper":   {"both may have a helper in common", components + "_most: 2\ncomponents: web: objects: cm: data: most: \"\\(_most)\"\n#Two: floors!: <=_most"},
		"Aliased":  {"also by another name", components + "M=_most: 2\ncomponents: web: objects: cm: data: most: \"\\(M)\"\n#Two: floors!: <=M"},
		"Variable": {"or as a variable", components + "let kept = 2\ncomponents: web: objects: cm: data: most: \"\\(kept)\"\n#Two: floors!: <=kept"},
		"Config":   {"the configuration stays", components + "config: most: *2 | int\ncomponents: web: objects: cm: data: most: \"\\(config.most)\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inline.Program(t, versioned+tc.more)
			many := p.ManyConversions()
			for _, c := range []struct{ from, to, spec string }{
				{"v1alpha1", "v2", `{size: xxxx}`}, {"v1alpha1", "v2", `{size: xxxxxxxx}`}, {"v2", "v1alpha1", `{floors: 2}`}, {"v2", "v1", `{floors: 3}`},
				{"v1beta1", "v1", `{}`}, {"v1beta1", "v1", `{count: 101}`}, {"v1", "v2", `{rooms: {count: x}}`}, {"v1alpha1", "v1", `{}`},
			} {
				var spec map[string]any
				inline.Decode(t, c.spec, &spec)
				want, wantErr := p.Conversions().Convert(spec, c.from, c.to)
				got, gotErr := many.Convert(spec, c.from, c.to)
				if diff := cmp.Diff([]any{want, errorText(wantErr)}, []any{got, errorText(gotErr)}); diff != "" {
					t.Errorf("%s: %s from %s to %s (-conversions +many):\n%s", tc.reason, c.spec, c.from, c.to, diff)
				}
			}
		})
	}
}

// errorText returns the text of an error, or "".
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
