package program

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/program/syntax"
)

// A component that waits for an input waits for an object that somebody has to create. Who
// creates it needs its kind, namespace and name, and not the author's name of the input.

// inputMissing returns which part of an input does not exist that a false condition refers to,
// or "". `inputs.x.object.data.key != _|_` is false and compares no values that could be shown.
func inputMissing(expr cue.Value) string {
	if path, ok := missingReference(expr, 4); ok && strings.HasPrefix(path, "inputs.") {
		return path + notThere
	}
	return ""
}

// nameAbsent adds to the messages of a rollout which objects the inputs are, and whether the
// object does not exist or only a key of it.
func (r *Rollout) nameAbsent(s Session) {
	var named []func(string) string
	for _, in := range r.Inputs {
		if in.Missing == "" && in.Object != "" {
			named = append(named, in.absence(s))
		}
	}
	if len(named) == 0 {
		return
	}
	say := func(text string) string {
		for _, name := range named {
			text = name(text)
		}
		return text
	}
	for c := range r.all() {
		c.rephrase(say)
	}
}

// absence returns the function that adds the object to a text about an input.
func (i Input) absence(s Session) func(string) string {
	namespace := i.Namespace
	if namespace == "" {
		namespace, _, _ = unstructured.NestedString(s.CR, "metadata", "namespace")
	}
	object := i.Object
	if namespace != "" {
		object = namespace + "/" + object
	}
	object = fmt.Sprintf("%s %s (input %s)", i.Kind.Kind, object, i.Name)
	path := syntax.Reference{Path: []string{"inputs", i.Name, "object"}}.String()
	if len(s.Inputs[i.Name].Objects) == 0 {
		absent := path + notThere + ": " + object + " does not exist"
		return strings.NewReplacer(path+notThere, absent, path+notSet, absent).Replace
	}
	return func(text string) string {
		_, rest, ok := strings.Cut(text, path+".data.")
		key, after, there := strings.Cut(rest, notThere)
		if !ok || !there || strings.ContainsAny(key, " :") {
			return text
		}
		return strings.TrimSuffix(text, after) + ": " + object + " has no key " + key + after
	}
}

// rephrase replaces the texts that say what a component waits for.
func (c *Component) rephrase(say func(string) string) {
	c.When.Detail = say(c.When.Detail)
	for i := range c.Missing {
		c.Missing[i] = say(c.Missing[i])
	}
	for _, p := range c.conditions() {
		p.Detail = say(p.Detail)
	}
}
