package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"cuelang.org/go/cue/literal"
)

// rulesFile has the required fields and the enums of the types, for code that validates objects by their
// Go types.
const rulesFile = "rules.json"

// rules is the content of rulesFile. Types are named as in Go: k8s.io/api/core/v1.Pod.
type rules struct {
	Comment  string              `json:"comment"`
	Required map[string][]string `json:"required"`
	Enums    map[string][]string `json:"enums"`
}

// tolerated are fields that are marked as required, but that the API server does not require.
var tolerated = map[string]bool{
	"k8s.io/api/core/v1.HTTPHeader value":      true,
	"k8s.io/api/core/v1.Sysctl value":          true,
	"k8s.io/api/core/v1.LimitRangeSpec limits": true,
	"k8s.io/api/core/v1.Event metadata":        true,
	"k8s.io/api/core/v1.Binding target":        true,
}

// renderRules returns rulesFile for the types of some packages.
func renderRules(pkgs []*pkg) ([]byte, error) {
	out := rules{Comment: mark + "; DO NOT EDIT.", Required: map[string][]string{}, Enums: map[string][]string{}}
	for _, p := range pkgs {
		for _, d := range p.decls {
			name := p.goPath + "." + d.name
			if d.shape == enumShape {
				values, err := unquoted(d.values)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				out.Enums[name] = values
			}
			for _, f := range d.fields {
				if f.required && !tolerated[name+" "+f.name] {
					out.Required[name] = append(out.Required[name], f.name)
				}
			}
		}
	}
	text, err := json.MarshalIndent(out, "", "\t")
	if err != nil {
		return nil, fmt.Errorf("encoding the rules: %w", err)
	}
	return append(text, '\n'), nil
}

// unquoted returns strings that are CUE literals, sorted.
func unquoted(literals []string) ([]string, error) {
	var out []string
	for _, l := range literals {
		s, err := literal.Unquote(l)
		if err != nil {
			return nil, fmt.Errorf("the value %s: %w", l, err)
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out, nil
}
