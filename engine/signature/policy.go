package signature

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// A Policy says which repositories an operator takes content from, and with which signatures. A nil Policy requires
// no signatures.
type Policy struct {
	rules   []rule
	objects bool
}

// rule is what holds for the repositories of a pattern.
type rule struct {
	pattern  []string
	keys     Keys
	unsigned bool
}

// A Demand says what a policy asks for.
type Demand int

// The demands.
const (
	// Nothing: any content is taken.
	Nothing Demand = iota
	// Signed: one of some keys has to have signed it.
	Signed
	// Refused: nothing is taken from there.
	Refused
)

// policyFile is the form of a policy.
type policyFile struct {
	Repositories []struct {
		// Match is a pattern of a registry and a repository.
		Match string `json:"match"`
		// Keys are public keys, of which one has to have signed.
		Keys []string `json:"keys"`
		// Unsigned is Allow, or nothing.
		Unsigned choice `json:"unsigned"`
	} `json:"repositories"`
	// OtherSources is Allow or Refuse.
	OtherSources choice `json:"otherSources"`
}

type choice string

const (
	allow  choice = "Allow"
	refuse choice = "Refuse"
)

// anyRest is the last part of a pattern that stands for any parts.
const anyRest = "**"

// ParsePolicy reads a policy in YAML. What it does not know it refuses, because it might restrict something.
func ParsePolicy(text []byte) (*Policy, error) {
	var file policyFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, err
	}
	out := &Policy{objects: file.OtherSources == allow}
	if !slices.Contains([]choice{"", allow, refuse}, file.OtherSources) {
		return nil, fmt.Errorf("otherSources: %q is neither Allow nor Refuse", file.OtherSources)
	}
	if len(file.Repositories) == 0 {
		return nil, errors.New("it has no repositories; a rule has a pattern as match, and keys")
	}
	for i, r := range file.Repositories {
		next := rule{pattern: strings.Split(r.Match, "/"), unsigned: r.Unsigned == allow}
		var err error
		if next.keys, err = ParseKeys(r.Keys); err == nil {
			err = next.check(r.Unsigned)
		}
		if err != nil {
			return nil, fmt.Errorf("repositories[%d]: %w", i, err)
		}
		out.rules = append(out.rules, next)
	}
	return out, nil
}

// check errors if a rule says nothing, or two things.
func (r rule) check(unsigned choice) error {
	for i, part := range r.pattern {
		_, err := path.Match(part, "")
		if part == "" || err != nil || part == anyRest && i != len(r.pattern)-1 {
			return fmt.Errorf("match: %q is no pattern, such as registry.example.com/operators/*, or registry.example.com/** for all below", strings.Join(r.pattern, "/"))
		}
	}
	switch {
	case unsigned != "" && unsigned != allow:
		return fmt.Errorf("unsigned: %q is not Allow", unsigned)
	case r.unsigned == (len(r.keys) > 0):
		return errors.New("it has either keys or unsigned: Allow")
	}
	return nil
}

// ForRepository returns what a policy demands of a repository: the first rule that matches decides. A repository without a rule
// is refused.
func (p *Policy) ForRepository(repository string) (Demand, Keys) {
	if p == nil {
		return Nothing, nil
	}
	for _, r := range p.rules {
		if !r.matches(strings.Split(repository, "/")) {
			continue
		}
		if r.unsigned {
			return Nothing, nil
		}
		return Signed, r.keys
	}
	return Refused, nil
}

// OfObjects returns what a policy demands of files that an object of the cluster has, which nobody signs.
func (p *Policy) OfObjects() Demand {
	if p == nil || p.objects {
		return Nothing
	}
	return Refused
}

// matches reports whether a rule is about a repository.
func (r rule) matches(parts []string) bool {
	for i, pattern := range r.pattern {
		if pattern == anyRest {
			return len(parts) > i
		}
		if i >= len(parts) {
			return false
		}
		if ok, err := path.Match(pattern, parts[i]); err != nil || !ok {
			return false
		}
	}
	return len(parts) == len(r.pattern)
}
