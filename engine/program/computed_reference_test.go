package program_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnObjectWithAComputedNameIsWaitedForByItsName(t *testing.T) {
	t.Parallel()
	p := compile(t, `
components: {
	"w-2": {objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "w"}, outputs: url: live["w-\(cr.spec.size)"].o.data.url}
	text: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "t", data: state: "is \(live["w-\(cr.spec.size)"].o.status.state)"}
	value: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "v", data: state: live["w-\(cr.spec.size)"].o.status.state}
	loop: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "l", data: {for n in [2] {"n\(n)": live["w-\(n)"].o.status.state}}}
	through: objects: c: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "x", data: url: components["w-\(cr.spec.size)"].outputs.url}
	when: when: live["w-\(cr.spec.size)"].o.status.state == "on"
}
`)
	rows := map[string]struct {
		reason, live string
		want         map[string][]string
	}{
		"neither object": {
			"it has not been created", `{}`,
			map[string][]string{
				"text":    {`objects.c.data.state: live."w-2" is not there yet (shop/shop.cue:16)`},
				"value":   {`objects.c.data.state: live."w-2" is not there yet (shop/shop.cue:17)`},
				"loop":    {`objects.c.data.n2: live."w-2" is not there yet (shop/shop.cue:18)`},
				"through": {`components."w-2".outputs.url: live."w-2" is not there yet (shop/shop.cue:15)`},
				"when":    {`live["w-\(cr.spec.size)"].o.status.state == "on": live."w-2" is not there yet (shop/shop.cue:20)`},
			},
		},
		"not its status": {
			"its controller has not written it", `{"w-2": {o: {metadata: {name: w}}}}`,
			map[string][]string{
				"text":    {`objects.c.data.state: live."w-2".o.status is not there yet (shop/shop.cue:16)`},
				"value":   {`objects.c.data.state: live."w-2".o.status is not there yet (shop/shop.cue:17)`},
				"loop":    {`objects.c.data.n2: live."w-2".o.status is not there yet (shop/shop.cue:18)`},
				"through": {`components."w-2".outputs.url: live."w-2".o.data is not there yet (shop/shop.cue:15)`},
				"when":    {`live["w-\(cr.spec.size)"].o.status.state == "on": live."w-2".o.status is not there yet (shop/shop.cue:20)`},
			},
		},
		"all": {"nothing is missing", `{"w-2": {o: {data: {url: u}, status: {state: "on"}}}}`, map[string][]string{}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string][]string{}
			for _, c := range evaluate(t, p, session(t, `{}`, row.live)).Components {
				if len(c.Missing) > 0 && c.Name != "w-2" {
					got[c.Name] = c.Missing
				}
				if c.When.Detail != "" {
					got[c.Name] = []string{c.When.Detail}
				}
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
