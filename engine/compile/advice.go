package compile

import "fmt"

// untranslatedf returns the error for something that has no node, with advice.
func untranslatedf(path, format string, args ...any) *untranslated {
	return &untranslated{Reason: Reason{Path: path, Message: fmt.Sprintf(format, args...), Hint: advice[format]}}
}

// advice says for each message how to write what it is about so that it translates.
var advice = map[string]string{
	"%v":                                                  "use operators and functions of strings, strconv, list, math, regexp, encoding and crypto over scalars; a regular expression has to be a literal",
	"it is nested too deep":                               "give a part of it a name in the root of the package, and use the value in fewer steps",
	"it is no value: %v":                                  "give it a value that is a text, a number, a boolean or null of 64 bits at most",
	"there is no translation of %v":                       "write it by + - * / div mod, comparisons, &&, ||, ! or an interpolation",
	"there is no translation of %s":                       "check the elements by bounds of their own, or their number by list.MinItems and list.MaxItems",
	"it is a type and no value: %v":                       "refer to the value itself, such as cr.spec.name, and not to a type that is unified with it elsewhere",
	"its text is not known":                               "write the interpolation where it is used, or in a field",
	"what it calls is not known":                          "call a function of CUE by the name of its package, such as strings.ToUpper",
	"it has constraints and no value: %v":                 "unify the constraints with a value, such as cr.spec.size & <5",
	"there is no check for %v":                            "write the constraint by bounds, regular expressions, | of literals, or strings.MinRunes and strings.MaxRunes",
	"values decide about unserved":                        "write a literal: \"wait\" or \"skip\"",
	"values decide about a policy":                        "let a boolean or what there is decide, as in if cr.spec.keep {policy: x: delete: \"orphan\"}",
	"values decide about an edge":                         "write literals for until and optional",
	"values decide about the kind of an object":           "write a literal apiVersion and kind, in an object for each kind",
	"values decide about the kind of an input":            "write a literal apiVersion and kind, in an input for each kind",
	"values decide about an input":                        "let namespace, name and selector of the input be references or interpolations",
	"values decide about its form":                        "decide by what there is, by a boolean or by an if over the resource itself, such as if cr.spec.size > 3, or make it a value: \"\\(cr.spec.size > 3)\"; a label or an index that is a value has a template for each",
	"values decide whether it is complete":                "give what may be missing a default, as in *live.x.y.status.n | 0",
	"values decide which components there are":            "name components by keys of a map rather than by values, as in for name, x in cr.spec.xs",
	"the values decide which of several it is":            "choose by if on a boolean or a comparison, or mark a default and give each value where it is used",
	"a default depends on values":                         "write a literal default in the schema, and compute the value in the package",
	"a default adds elements":                             "write a default for the whole list, or none",
	"it is not decided":                                   "ask whether there is what the condition refers to: if cr.spec.x != _|_ if cr.spec.x > 3",
	"two numbers are one value if they are of one kind":   "refer to one of the numbers, and compare the other one with it in a hidden field",
	"the verdict may depend on values: %s":                "compare values that are there together, or give what may be missing a default",
	"what it waits for may depend on values: %s":          "refer to what is missing directly, and not under a condition on values",
	"what is missing of an input explains the verdict":    "compare a value of the input, or let an object refer to it: it waits for it by itself",
	"a message names the object of an input":              "it is so until the input exists; a literal name or namespace has one template for all resources",
	"a secret decides about the form":                     "do not decide by the content of a Secret: decide by whether there is one",
	"a secret decides about a message":                    "compare a digest of it, as in hex.Encode(sha256.Sum256(x)), or only whether it is there",
	"the template gives another rollout (%v)":             "refer to each value directly; this is worth a report",
	"the template gives another rollout for other values": "refer to each value directly; this is worth a report",
	"it has %d values, and %d are the limit":              "refer to what is needed of it rather than to all of it",
	"values decide when to reconcile again":               "write requeueAfter as a text or an interpolation of what is always there",
	"CUE panics where it is translated":                   "this is worth a report",
}
