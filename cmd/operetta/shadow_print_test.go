package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/shadow"
)

// TestAShadowPrintsWhatItFinds prints one of each thing that operetta run --shadow says, for a person and for a program.
func TestAShadowPrintsWhatItFinds(t *testing.T) {
	t.Parallel()
	site := func(name string, state shadow.State) shadow.Resource {
		return shadow.Resource{Package: "site", APIVersion: "example.com/v1", Kind: "Site", Namespace: "team-a", Name: name, State: state}
	}
	differs := site("north", shadow.Different)
	differs.Objects = []shadow.Object{
		{Component: "base", Relation: shadow.Missing, APIVersion: "v1", Kind: "ConfigMap", Namespace: "team-a", Name: "north-settings", Alike: "ConfigMap team-a/north-config"},
		{Relation: shadow.Unrendered, APIVersion: "v1", Kind: "ConfigMap", Namespace: "team-a", Name: "north-config"},
		{Component: "web", Relation: shadow.Changed, APIVersion: "apps/v1", Kind: "Deployment", Namespace: "team-a", Name: "north", Fields: []shadow.Field{
			{Path: "spec.replicas", Live: "3", Wanted: "2", Managers: []string{"other-operator", "kubectl-scale"}}, {Path: "spec.paused", Wanted: "true"},
		}, MoreFields: 4},
	}
	differs.Undecided = []plan.Problem{{Component: "after", Message: "waiting for live.web.deployment.status"}}
	differs.Hooks, differs.Owners = []string{"afterDeploy.smoke"}, []string{"Deployment team-a/north belongs to Site other"}
	invalid := site("west", shadow.Invalid)
	invalid.Paused, invalid.Problems = true, []plan.Problem{{Path: "spec.size", Message: "invalid value 12 (out of bound <=9)", File: "site/site.cue", Line: 6}}
	say := func(p shadowPrinter) {
		p.Note("the changed package is broken")
		for _, r := range []shadow.Resource{site("south", shadow.Same), differs, invalid} {
			p.Resource(r)
		}
		p.Gone(schema.GroupKind{Group: "example.com", Kind: "Site"}, "team-a", "east")
		p.Summary(shadow.Summary{All: 3, Same: 1, Different: 1, Invalid: 1})
		p.say("after 10m0s: 1 of 3 resources are the same; 1 different, 1 invalid")
	}
	for name, row := range map[string]struct{ reason, format, out, err string }{
		"for a person": {
			reason: "notes are on standard error", format: formatText,
			out: `Site team-a/south  same
Site team-a/north  differs in 6 fields, 1 object missing, 1 object not rendered, 1 undecided
  + base: ConfigMap north-settings missing
      ConfigMap team-a/north-config is alike, and not rendered: is it this one under another name?
  - ConfigMap north-config not rendered
  ~ web: Deployment north different
      spec.replicas: live 3, wanted 2 (managers other-operator, kubectl-scale)
      spec.paused: live (none), wanted true
      and 4 more
  ? after: waiting for live.web.deployment.status
  note: the hook afterDeploy.smoke may run once the kind is handed over
  note: Deployment team-a/north belongs to Site other
Site team-a/west  invalid, paused
  ! spec.size: invalid value 12 (out of bound <=9) (site/site.cue:6)
Site team-a/east  is gone
1 of 3 resources are the same; 1 different, 1 invalid
after 10m0s: 1 of 3 resources are the same; 1 different, 1 invalid
`,
			err: "note: the changed package is broken\n",
		},
		"for a program": {
			reason: "there is an object a line, and each says what it is", format: formatJSON,
			out: `{"type":"note","message":"the changed package is broken"}
{"type":"resource","package":"site","apiVersion":"example.com/v1","kind":"Site","namespace":"team-a","name":"south","state":"same"}
{"type":"resource","package":"site","apiVersion":"example.com/v1","kind":"Site","namespace":"team-a","name":"north","state":"different","objects":[{"component":"base","relation":"missing","apiVersion":"v1","kind":"ConfigMap","namespace":"team-a","name":"north-settings","alike":"ConfigMap team-a/north-config"},{"relation":"unrendered","apiVersion":"v1","kind":"ConfigMap","namespace":"team-a","name":"north-config"},{"component":"web","relation":"different","apiVersion":"apps/v1","kind":"Deployment","namespace":"team-a","name":"north","fields":[{"path":"spec.replicas","live":"3","wanted":"2","managers":["other-operator","kubectl-scale"]},{"path":"spec.paused","wanted":"true"}],"moreFields":4}],"undecided":[{"component":"after","message":"waiting for live.web.deployment.status"}],"hooks":["afterDeploy.smoke"],"owners":["Deployment team-a/north belongs to Site other"]}
{"type":"resource","package":"site","apiVersion":"example.com/v1","kind":"Site","namespace":"team-a","name":"west","state":"invalid","paused":true,"problems":[{"path":"spec.size","message":"invalid value 12 (out of bound <=9)","file":"site/site.cue","line":6}]}
{"type":"gone","group":"example.com","kind":"Site","namespace":"team-a","name":"east"}
{"type":"summary","all":3,"same":1,"different":1,"undecided":0,"invalid":1,"unreadable":0,"deleting":0,"pending":0}
{"type":"note","message":"after 10m0s: 1 of 3 resources are the same; 1 different, 1 invalid"}
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, notes bytes.Buffer
			say(newShadowPrinter(streams{out: &out, err: &notes}, row.format))
			if diff := cmp.Diff(row.out, out.String()); diff != "" {
				t.Errorf("%s: standard output (-want +got):\n%s", row.reason, diff)
			}
			if diff := cmp.Diff(row.err, notes.String()); diff != "" {
				t.Errorf("%s: standard error (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
