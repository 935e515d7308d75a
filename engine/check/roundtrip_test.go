package check_test

import (
	"strings"
	"testing"

	"operetta.dev/engine/check"
	"operetta.dev/test/inline"
)

func TestRoundTripsNameTheSmallestSpecThatIsLost(t *testing.T) {
	t.Parallel()
	const head = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "shop.example"
kind:  "Shop"
cr: spec: #Spec
#Spec: {size: int & >=0 & <=100 | *2, name?: string, color: *"red" | "blue"}
versions: v1: {spec: #Spec, storage: true}
versions: v2: {spec: #Two, convert: v1: {to: given: #Two, from: given: #Spec}}
`
	for name, tc := range map[string]struct{ reason, body, faults, warnings string }{
		"Lossless": {"every field has its place", `
#Two: {rooms: int & >=0 & <=100 | *2, label?: string, blue: bool | *false}
versions: v2: convert: v1: {
	to: {given: _, spec: {size: given.rooms, if given.label != _|_ {name: given.label}, color: {if given.blue {"blue"}, if !given.blue {"red"}}}}
	from: {given: _, spec: {rooms: given.size, if given.name != _|_ {label: given.name}, blue: given.color == "blue"}}
}`, "", ""},
		"Lost": {"a field without a place is found, and nothing else is in the spec", `
#Two: {size: int & >=0 & <=100 | *2, color: *"red" | "blue"}
versions: v2: convert: v1: {
	to: {given: _, spec: given}
	from: {given: _, spec: {size: given.size, color: given.color}}
}`, `shop/shop.cue:12: versions.v2.convert.v1.from: spec.name is "name" in version v1, and absent when it is back from v2: {"name":"name"} (convert it, or write in lossy why it is lost)`, ""},
		"SaidToBeLost": {"an author may lose something on purpose", `
#Two: {size: int & >=0 & <=100 | *2, color: *"red" | "blue"}
versions: v2: convert: v1: {
	to: {given: _, spec: given}
	from: {given: _, spec: {size: given.size, color: given.color}}
	lossy: "nobody had names then"
}`, "", `spec.name is "name" in version v1, and absent when it is back from v2: {"name":"name"} (nobody had names then)`},
		"Partial": {"what the other version has no valid spec for", `
#Two: {size: int & >=0 & <=50 | *2, name?: string, color: *"red" | "blue"}
versions: v2: convert: v1: {
	to: {given: _, spec: given}
	from: {given: _, spec: given}
}`, `a spec of v1 cannot become one of v2: spec.size`, ""},
		"Refused": {"a rule that only the API server knows", `
#Two: {size: int & >=0 & <=100 | *2, name?: string, color: *"red" | "blue", @crd(rule="self.color != 'blue' || self.size == 2", message="blue is small")}
versions: v2: convert: v1: {
	to: {given: _, spec: given}
	from: {given: _, spec: given}
}`, `a spec of v1 becomes one of v2 that the API server refuses`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults, warnings := check.RoundTrips(inline.Program(t, head+tc.body))
			for _, c := range []struct{ what, want, got string }{{"faults", tc.faults, faults.Error()}, {"warnings", tc.warnings, warnings.Error()}} {
				if (c.want == "") != (c.got == "") || !strings.Contains(c.got, c.want) {
					t.Errorf("%s: the %s are\n%s\nand should have\n%s", tc.reason, c.what, c.got, c.want)
				}
			}
		})
	}
}

func TestAPackageOfOneVersionMakesNoRoundTrip(t *testing.T) {
	t.Parallel()
	faults, warnings := check.RoundTrips(inline.Program(t, `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "shop.example"
kind:  "Shop"
versions: v1: spec: #Spec
cr: spec: #Spec
#Spec: {}
`))
	if len(faults)+len(warnings) > 0 {
		t.Errorf("got %v and %v", faults, warnings)
	}
}
