package program

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/program/syntax"
)

// A component that waits for an input waits for an object that a person has to create. The
// message has to name its kind, namespace and name, because only the author knows the input's name.

// inputMissing returns the part of an input that a false condition refers to and that does not
// exist, or "". `inputs.x.object.data.key != _|_` is false and compares no values that could be shown.
func inputMissing(expr cue.Value) string {
	path, ok := firstMissing(expr, 4)
	if path = strings.TrimPrefix(path, presencePrefix); ok && strings.HasPrefix(path, "inputs.") {
		return path + notThere
	}
	return ""
}

// nameMissingInputs adds the objects of missing inputs to the messages of a rollout, and whether
// the whole object or only one of its keys is missing.
func (r *Rollout) nameMissingInputs(s Session) {
	var named []func(string) string
	for _, in := range r.Inputs {
		if in.Missing == "" && in.Object != "" {
			named = append(named, in.nameMissing(s))
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
	for _, c := range r.All() {
		c.rephrase(say)
	}
}

// nameMissing returns a function that adds the object of an input to a message about the input.
func (i Input) nameMissing(s Session) func(string) string {
	namespace := i.Namespace
	if namespace == "" {
		namespace, _, _ = unstructured.NestedString(s.CR, "metadata", "namespace")
	}
	object := i.Object
	if namespace != "" {
		object = namespace + "/" + object
	}
	object = fmt.Sprintf("%s %s %s", i.Kind.Kind, object, i.mention())
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

// mention is how a message that names the object of an input refers to the input.
func (i Input) mention() string { return "(input " + i.Name + ")" }

// NamesObjectOf reports whether a message of the rollout names the object of an input, so that the message rests on what selects
// that object. It looks for the words that such messages are made of here.
func (r *Rollout) NamesObjectOf(in Input) bool {
	found := false
	look := func(text string) string {
		found = found || strings.Contains(text, in.mention())
		return text
	}
	for _, c := range r.All() {
		c.rephrase(look)
	}
	return found
}

// rephrase replaces the messages about what a component waits for.
func (c *Component) rephrase(say func(string) string) {
	c.When.Detail = say(c.When.Detail)
	for i := range c.Missing {
		c.Missing[i] = say(c.Missing[i])
	}
	for _, p := range c.conditions() {
		p.Detail = say(p.Detail)
	}
}
