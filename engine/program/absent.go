package program

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"

	"operetta.dev/engine/program/syntax"
)

// What waits for an input waits for an object that somebody has to make. Its name and
// namespace are what they need, not the name that the author has given it.

// inputMissing says of a condition that is false which part of an input it refers to
// is not there: `inputs.x.object.data.key != _|_` compares nothing.
func inputMissing(expr cue.Value) string {
	if path, ok := missingReference(expr, 4); ok && strings.HasPrefix(path, "inputs.") {
		return path + notThere
	}
	return ""
}

// nameAbsent says in the messages of a rollout which objects those are that inputs are
// about, and whether it is the object or something in it that is not there.
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

// absence returns what adds to a text about an input which object that is.
func (i Input) absence(s Session) func(string) string {
	namespace := i.Namespace
	if namespace == "" {
		meta, _ := s.CR["metadata"].(map[string]any)
		namespace = text(meta["namespace"])
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

// rephrase puts what a component waits for differently.
func (c *Component) rephrase(say func(string) string) {
	c.When.Detail = say(c.When.Detail)
	for i := range c.Missing {
		c.Missing[i] = say(c.Missing[i])
	}
	for _, p := range c.conditions() {
		p.Detail = say(p.Detail)
	}
}
