package why_test

import (
	"encoding/json"
	"strings"
	"testing"

	"operetta.dev/engine/render"
	"operetta.dev/engine/why"
	"operetta.dev/test/inline"
)

// masking is a package that renders a Secret and a ConfigMap, and what an answer about data.k of that may show.
type masking struct {
	reason string
	body   string
	secret bool
	// hidden are texts that the answer must not have, and shown is one that it must.
	hidden []string
	shown  string
}

func maskings() map[string]masking {
	const secret = `components: c: objects: sec: {apiVersion: "v1", kind: "Secret", metadata: name: "s"}` + "\n"
	const hard = secret + "components: c: objects: sec: stringData: hard: #hard\n"
	const literal = "#hard: \"hardcoded-pass\"\n"
	return map[string]masking{
		"a part of it": {"the parts tell the whole",
			hard + literal + component(`k: strings.Replace(components.c.objects.sec.stringData.hard, "hard", "soft", 1)`),
			true, []string{"hardcoded", "softcoded", "coded-pass"}, "#hard: "},
		"the same definition": {"the value does not name the Secret", hard + literal + component("{\nk: strings.ToUpper(#hard)\n}"),
			true, []string{"HARDCODED", "hardcoded"}, "k: "},
		"encoded": {"data is content, too",
			secret + "components: c: objects: sec: data: hard: base64.Encode(null, #hard)\n" + literal + component(`k: strings.ToUpper(#hard)`),
			true, []string{"HARDCODED", "hardcoded"}, ""},
		"a raw string": {"its quotes are others", hard + "#hard: #\"raw\"pass\"word\"#\n" + component(`k: strings.ToUpper(#hard)`),
			true, []string{"RAW", "raw", "pass", "word"}, ""},
		"a comment behind it": {"it may say what the value is",
			hard + "#hard: \"x-\\(#n)\" // 4711 is the number of the safe\n#n: 4711\n" + component(`k: strings.ToUpper(#hard)`),
			true, []string{"4711", "safe"}, ""},
		"an element of a list": {"its line has no field",
			secret + "components: c: objects: sec: stringData: hard: strings.Join(#hard, \"\")\n#hard: [\n\"user:pass\", \"word\",\n]\n" + component(`k: strings.ToUpper(#hard[0])`),
			true, []string{"user", "USER", "pass"}, ""},
		"a hook": {"its Secrets have content, too",
			"hooks: afterVerify: h: objects: sec: {apiVersion: \"v1\", kind: \"Secret\", metadata: name: \"s\"}\n" +
				"hooks: afterVerify: h: objects: sec: stringData: hard: #hard\n" + literal + component(`k: strings.ToUpper(#hard)`),
			true, []string{"HARDCODED", "hardcoded"}, ""},
		"the configuration": {"a Secret is made of it",
			secret + "config: pass: string | *\"configured-pass\"\ncomponents: c: objects: sec: stringData: hard: config.pass\n" + component(`k: strings.ToUpper(config.pass)`),
			true, []string{"CONFIGURED", "configured"}, "config.pass"},
		"one line for both": {"a line is shown as a whole",
			"components: c: objects: {sec: {apiVersion: \"v1\", kind: \"Secret\", metadata: name: \"s\", stringData: hard: #\"raw\"pass\"#}, " +
				"cm: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"m\", data: k: \"x\"}}\n",
			true, []string{"raw", `pass`}, ""},
		"another literal":        {"it is no content of the Secret", hard + literal + component(`k: strings.ToUpper("plain")`), false, []string{"hardcoded"}, "PLAIN"},
		"the name of the Secret": {"only its content is secret", hard + literal + component(`k: components.c.objects.sec.metadata.name + "-plain"`), false, []string{"hardcoded"}, "s-plain"},
		"a name for the spec that both use": {"it has no literal",
			secret + "_spec: cr.spec\ncomponents: c: objects: sec: stringData: hard: _spec.note\n" + component(`k: strings.ToUpper(_spec.mode)`),
			false, []string{"given-note"}, `"B"`},
	}
}

func TestALiteralThatASecretIsMadeOfIsNotShown(t *testing.T) {
	t.Parallel()
	for name, row := range maskings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			imports := ""
			for name, path := range map[string]string{"strings.": "strings", "base64.": "encoding/base64"} {
				if strings.Contains(row.body, name) {
					imports += "import \"" + path + "\"\n"
				}
			}
			p := inline.Program(t, strings.Replace(header, "package site\n", "package site\n"+imports, 1)+row.body)
			a, err := why.Ask(t.Context(), p, render.Input{CR: site(map[string]any{"note": "given-note"})}, why.Question{Object: "c/cm", Path: ".data.k"})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			if a.Secret != row.secret {
				t.Errorf("secret is %t: %s\n%s", a.Secret, row.reason, text)
			}
			for _, hidden := range row.hidden {
				if strings.Contains(string(text), hidden) {
					t.Errorf("it shows %s: %s\n%s", hidden, row.reason, text)
				}
			}
			if !strings.Contains(strings.ReplaceAll(string(text), `\"`, `"`), row.shown) {
				t.Errorf("it does not show %s:\n%s", row.shown, text)
			}
		})
	}
}
