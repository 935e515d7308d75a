package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"operetta.dev/engine/crd/conform"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

const (
	// maxTrips is how many specs of each version are converted. Each takes two evaluations or more, and each start of
	// the operator makes all of them.
	maxTrips = 60
	// maxLost is how many fields each way is reported to lose.
	maxLost = 5
	// maxShown is how many bytes of a spec a message shows.
	maxShown = 300
)

// RoundTrips converts specs that are made up from the schemas of the versions of a package: each to the neighbour of its
// version and back. It returns faults about what cannot be converted, or becomes invalid, or is another spec when it is
// back, each with the smallest spec found that shows it. What a package says that it loses is a warning.
func RoundTrips(p *program.Program) (faults, warnings fault.Faults) {
	sides := map[string]*side{}
	for _, v := range p.Meta().Versions {
		s, err := newSide(p, v.Name)
		if err != nil {
			return nil, nil //nolint:nilerr // other parts of vet say why there is no definition
		}
		sides[v.Name] = s
	}
	var many *program.Conversions // most packages have none
	for _, v := range p.Meta().Versions {
		if v.Neighbour == "" {
			continue
		}
		if many == nil {
			many = p.ManyConversions()
		}
		declared := []string{"versions", v.Name, "convert", v.Neighbour}
		for _, t := range []trip{
			{program: p, conversions: many, from: sides[v.Name], over: sides[v.Neighbour], declared: append(slices.Clone(declared), "to")},
			{program: p, conversions: many, from: sides[v.Neighbour], over: sides[v.Name], declared: append(slices.Clone(declared), "from")},
		} {
			for _, f := range t.findings() {
				if f.isLoss && v.Lossy != "" {
					f.fault.Hint = v.Lossy
					warnings = append(warnings, f.fault)
					continue
				}
				faults = append(faults, f.fault)
			}
		}
	}
	return faults, warnings
}

// A side is a version, with what makes up its specs.
type side struct {
	version  string
	server   *conform.Server
	maker    *maker
	branches []*branch
}

// newSide returns a version of a package. The maker is nil if no spec of it can be made up.
func newSide(p *program.Program, version string) (*side, error) {
	definition, err := definitionOf(p, version)
	if err != nil {
		return nil, err
	}
	out := &side{version: version}
	if out.server, err = conform.NewServer(definition, version); err != nil {
		return nil, err
	}
	splitter := &splitter{compared: map[string][]any{}, rare: map[string][]choice{}, bound: maxTrips}
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if n := splitter.node(&spec, "spec", false, 0); n != nil {
		out.branches = splitter.branches
		out.maker = newMaker(p, n, splitter.branches)
	}
	return out, nil
}

// admit returns the spec that an API server makes of one, with the defaults. It errors if that refuses it.
func (s *side) admit(p *program.Program, spec any) (map[string]any, error) {
	kind := p.GroupVersionKind()
	stored, err := s.server.Admit(map[string]any{
		"apiVersion": kind.Group + "/" + s.version, "kind": kind.Kind, "metadata": map[string]any{"name": sampleName}, "spec": spec,
	}, nil)
	if err != nil {
		return nil, err
	}
	out, _ := stored["spec"].(map[string]any)
	return out, nil
}

// A trip is the way from one version over its neighbour and back.
type trip struct {
	program     *program.Program
	conversions *program.Conversions
	from, over  *side
	// declared is where the package has the first half of it.
	declared []string
}

// A tripFinding is what is wrong with a trip.
type tripFinding struct {
	// key is the same for findings of the same kind.
	key     string
	isLoss  bool
	message string
	fault   fault.Fault
}

// findings returns what is wrong, each with the smallest spec that shows it.
func (t trip) findings() []tripFinding {
	if t.from.maker == nil {
		return nil
	}
	var out []tripFinding
	for _, s := range cases(newCover(t.from.branches, t.from.maker.placesOf()), maxTrips) {
		found := t.try(s)
		if found == nil || len(out) == maxLost || slices.ContainsFunc(out, func(o tripFinding) bool { return o.key == found.key }) {
			continue
		}
		out = append(out, t.smallest(s, *found))
	}
	return out
}

// smallest returns a finding with as many branches as possible at their simplest choice.
func (t trip) smallest(s selection, found tripFinding) tripFinding {
	s = slices.Clone(s)
	for i := range s {
		for choice := range s[i] {
			smaller := slices.Clone(s)
			smaller[i] = choice
			if again := t.try(smaller); again != nil && again.key == found.key {
				s, found = smaller, *again
				break
			}
		}
	}
	found.fault = fault.Fault{
		Position: t.program.Syntax().NearestPosition(t.declared...), Path: strings.Join(t.declared, "."),
		Message: fmt.Sprintf("%s: %s", found.message, shown(t.spec(s), true)),
	}
	if found.isLoss {
		found.fault.Hint = "convert it, or write in lossy why it is lost"
	}
	return found
}

// spec returns the spec of a selection.
func (t trip) spec(s selection) any { return t.from.maker.make(s).resource["spec"] }

// try makes the trip once. It returns nil if nothing is wrong, or if an API server refuses the spec.
func (t trip) try(s selection) *tripFinding {
	spec, err := t.from.admit(t.program, t.spec(s))
	if err != nil {
		return nil // it is not a valid spec
	}
	there, err := t.conversions.Convert(spec, t.from.version, t.over.version)
	if err != nil {
		return failedTrip(t.from.version, t.over.version, err)
	}
	if _, err := t.over.admit(t.program, there); err != nil {
		message := fmt.Sprintf("a spec of %s becomes one of %s that the API server refuses: %v", t.from.version, t.over.version, err)
		return &tripFinding{key: "invalid", message: message}
	}
	back, err := t.conversions.Convert(there, t.over.version, t.from.version)
	if err != nil {
		return failedTrip(t.over.version, t.from.version, err)
	}
	// A clone, because an evaluation tells 1 from 1.0 and JSON does not.
	path, before, after := firstDifference("spec", plainJSON(spec), plainJSON(back))
	if path == "" {
		return nil
	}
	message := fmt.Sprintf("%s is %s in version %s, and %s when it is back from %s", path, before, t.from.version, after, t.over.version)
	return &tripFinding{key: "lost " + indices.ReplaceAllString(path, "[]"), isLoss: true, message: message}
}

// indices are what the elements of a list differ in: together they make one finding.
var indices = regexp.MustCompile(`\[\d+\]`)

// failedTrip returns the finding about a conversion that failed. Failures at one path make one finding. An error without a
// path is told apart by its type, and not by its text, which names the values of one resource and would make a finding of each.
func failedTrip(from, to string, err error) *tripFinding {
	text, key := err.Error(), fmt.Sprintf("%T", err)
	if faults, are := err.(fault.Faults); are && len(faults) > 0 { //nolint:errorlint // Convert returns them as they are
		text = faults[0].Path + ": " + faults[0].Message
		key = faults[0].Path
	}
	return &tripFinding{key: "failed " + from + key, message: fmt.Sprintf("a spec of %s cannot become one of %s: %s", from, to, text)}
}

// plainJSON returns data as JSON has it.
func plainJSON(v any) any {
	text, err := json.Marshal(v)
	var out any
	if err != nil || json.Unmarshal(text, &out) != nil {
		return v
	}
	return out
}

// firstDifference returns the path of the first value that differs, and both values as text; "" if none does.
func firstDifference(path string, a, b any) (at, before, after string) {
	if reflect.DeepEqual(a, b) {
		return "", "", ""
	}
	switch a := a.(type) {
	case map[string]any:
		b, same := b.(map[string]any)
		if !same {
			break
		}
		return firstFieldDifference(path, a, b)
	case []any:
		b, same := b.([]any)
		if !same || len(a) != len(b) {
			break
		}
		for i := range a {
			if at, before, after := firstDifference(path+"["+strconv.Itoa(i)+"]", a[i], b[i]); at != "" {
				return at, before, after
			}
		}
	}
	return path, shown(a, true), shown(b, true)
}

// firstFieldDifference is firstDifference for structs that differ.
func firstFieldDifference(path string, a, b map[string]any) (at, before, after string) {
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x, has := a[name]
		y, still := b[name]
		below := path + "." + name
		if has != still {
			return below, shown(x, has), shown(y, still)
		}
		if at, before, after := firstDifference(below, x, y); at != "" {
			return at, before, after
		}
	}
	return "", "", ""
}

// shown returns a value as a message has it.
func shown(v any, exists bool) string {
	if !exists {
		return "absent"
	}
	text, _ := json.Marshal(v) // it was JSON
	if len(text) > maxShown {
		return strings.ToValidUTF8(string(text[:maxShown]), "") + "..."
	}
	return string(text)
}
