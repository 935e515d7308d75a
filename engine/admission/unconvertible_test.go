package admission_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
)

// narrow is a package whose old version holds less than the new one, and one with a version that is not served.
const narrow = `package shop

import "operetta.dev/schemas/operator"

operator.#Controller

group: "shop.example"
kind:  "Shop"
cr: spec: #Spec
#Spec: {count: int | *2, name: string | *"shop"}
#Old: {count: int & <=100 | *2, name: =~"^[a-z]*$" | *"shop"}
versions: {
	v1: {spec: #Spec, storage: true}
	v1beta1: {spec: #Old, convert: v1: {
		to: {given: #Old, spec: {count: given.count, name: given.name}}
		from: {given: #Spec, spec: {count: given.count, name: given.name}}
	}}
	v1alpha1: {spec: #Older, served: false, convert: v1beta1: {
		to: {given: #Older, spec: count: given.count}
		from: {given: #Old, spec: count: given.count}
	}}
}
#Older: {count: int & <=10 | *2, name?: string}
`

func TestAResourceIsRefusedIfAServedVersionCannotExpressIt(t *testing.T) {
	t.Parallel()
	const unreadable = "version v1beta1 of it could not be read: the value does not fit"
	for name, tc := range map[string]struct {
		reason        string
		before, after string
		unconverted   error
		causes        []string
		message       string
		warnings      []string
		fails         bool
	}{
		"Fits":        {reason: "the other version can express it", after: `{spec: {count: 100}}`},
		"NotServed":   {reason: "nobody lists a version that is not served", after: `{spec: {count: 11}}`},
		"Beyond":      {reason: "each list of the other version would fail for everybody", after: `{spec: {count: 101}}`, causes: []string{"spec.count: " + unreadable}},
		"Secret":      {reason: "the message has no value", after: `{spec: {name: "Opensesame!"}}`, causes: []string{"spec.name: " + unreadable}},
		"Expensive":   {reason: "it would be too expensive in each list", after: `{}`, unconverted: &program.LimitError{Evaluated: true, Text: "its evaluation took too long"}, causes: []string{"spec: version v1beta1 of it could not be read: its evaluation took too long"}},
		"Panics":      {reason: "it would panic in each list", after: `{}`, unconverted: &program.PanicError{Package: "shop", Cause: "x"}, causes: []string{"spec: version v1beta1 of it could not be read: its conversion panics"}},
		"Unavailable": {reason: "it is not the fault of the request", after: `{}`, unconverted: &program.UnavailableError{Err: errors.New("no worker")}, fails: true},
		"Before":      {reason: "what was stored before may be mended bit by bit", before: `{spec: {count: 101}}`, after: `{spec: {count: 101, name: a}}`, warnings: []string{"it was invalid before, and still is: spec.count: " + unreadable}},
		"Worse":       {reason: "what is new is refused", before: `{spec: {count: 101}}`, after: `{spec: {count: 101, name: A}}`, causes: []string{"spec.name: " + unreadable}, warnings: []string{"it was invalid before, and still is: spec.count: " + unreadable}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &reviewer{Program: inline.Program(t, narrow), unconverted: tc.unconverted}
			got, err := resources(r).Validate(t.Context(), request(t, tc.before, tc.after))
			if (err != nil) != tc.fails {
				t.Fatalf("%s: got %+v, %v", tc.reason, got, err)
			}
			if tc.fails {
				return
			}
			var causes []string
			if !got.Allowed {
				for _, c := range got.Result.Details.Causes {
					causes = append(causes, c.Field+": "+strings.TrimPrefix(c.Message, "Invalid value: "))
				}
			}
			if diff := cmp.Diff(tc.causes, causes); diff != "" || got.Allowed != (len(tc.causes) == 0) {
				t.Errorf("%s: allowed: %t, causes (-want +got):\n%s", tc.reason, got.Allowed, diff)
			}
			if diff := cmp.Diff(tc.warnings, got.Warnings); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
