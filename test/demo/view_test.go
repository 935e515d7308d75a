package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// explains stands for operetta. It fails like the real one, since the resource is not ready, and notes how it was called.
const explains = `#!/bin/sh
echo "$*, coloured: ${CLICOLOR_FORCE:-0}" >>calls
[ -e gone ] && { echo 'operetta: it does not exist' >&2; exit 1; }
echo 'WebApp/shop in default  Waiting  0/1 components'
echo 'web  … Applied'
echo '  · reconciles: is 0, wanted >= 1'
printf '\033[33mreconciles: \033[0mnot known: only the operator knows\n'
exit 1
`

func TestOnAClusterThePictureIsThatOfOperettaExplain(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("bin", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("bin", "operetta"), []byte(explains), 0o700); err != nil {
		t.Fatal(err)
	}
	d, shown := onFile(t)
	answers := map[string]string{"/apis/example.com/v1": `{"resources": [{"name": "webapps", "kind": "WebApp", "namespaced": true}]}`}
	d.cluster = fakeCluster(t, answers)
	var r resource
	r.APIVersion, r.Kind, r.Metadata.Name, r.Metadata.Namespace = "example.com/v1", "WebApp", "shop", "default"
	const picture, absent = "\nWebApp/shop in default  Waiting  0/1 components\nweb  … Applied\n  · reconciles: is 0, wanted >= 1\n\n", "\nWebApp/shop  does not exist\n\n"
	const call = "explain webapp/shop --namespace default --kubeconfig a.kubeconfig, coloured: 0\n"
	const at = "/apis/example.com/v1/namespaces/default/webapps/shop"
	for _, look := range []struct {
		reason, version string
		gone, fails     bool
		shows, calls    string
	}{
		{reason: "what it prints is shown, although it ends with 1", version: "1", shows: picture, calls: call},
		{reason: "a process is not spent on what has not changed", version: "1"},
		{reason: "the same picture is not drawn again where nothing moves", version: "2", calls: call},
		{reason: "a resource that goes while it is explained leaves the picture", version: "3", gone: true, fails: true, calls: call},
		{reason: "no command is needed to say that there is none", gone: true, shows: absent},
		{reason: "one that comes back is explained again", version: "2", shows: picture, calls: call},
	} {
		if delete(answers, at); look.version != "" {
			answers[at] = `{"kind": "WebApp", "metadata": {"uid": "u", "resourceVersion": "` + look.version + `"}}`
		}
		_ = os.Remove("gone")
		if look.gone {
			if err := os.WriteFile("gone", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before := shown()
		if _, err := d.draw(t.Context(), r); (err != nil) != look.fails {
			t.Errorf("%s: error %v", look.reason, err)
		}
		if diff := cmp.Diff(look.shows, strings.TrimPrefix(shown(), before)); diff != "" {
			t.Errorf("%s: it shows (-want +got):\n%s", look.reason, diff)
		}
		calls, _ := os.ReadFile("calls")
		_ = os.Remove("calls")
		if diff := cmp.Diff(look.calls, string(calls)); diff != "" {
			t.Errorf("%s: the calls (-want +got):\n%s", look.reason, diff)
		}
	}
}

func TestReadyOfTheSpecBeforeIsNotReady(t *testing.T) {
	t.Parallel()
	var r resource
	r.Metadata.Generation, r.Status.ObservedGeneration, r.Status.Phase = 1, 1, "Ready"
	if !r.ready() {
		t.Error("it is not ready now")
	}
	if r.Metadata.Generation = 2; r.ready() {
		t.Error("it counts as ready for a spec that nobody has looked at")
	}
}
