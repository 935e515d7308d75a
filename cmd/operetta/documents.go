package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/program"
	"sigs.k8s.io/yaml"
)

// stdin is how kubectl names the standard input, and how it is shown in errors.
const (
	stdin      = "-"
	stdinShown = "<stdin>"
)

// A document is one YAML or JSON document of a file.
type document struct {
	file string
	line int    // where it begins
	text string // padded with empty lines, so that its line numbers are those of the file
	// object is what it says, in the types of Kubernetes' unstructured objects.
	object map[string]any
}

// at returns where the document begins.
func (d document) at() program.Position { return program.Position{File: d.file, Line: d.line} }

// readDocuments returns the documents of a file; "-" is the standard input. Empty
// documents are left out, and a List is replaced by what it lists. It errors when the file cannot
// be read, is too large, or is not what it should be, and when the context ends first.
func readDocuments(ctx context.Context, file string, in io.Reader) ([]document, error) {
	data, shown, err := readFile(ctx, file, in)
	if err != nil {
		return nil, err
	}
	var out []document
	for _, part := range split(shown, string(data)) {
		documents, err := part.decode()
		if err != nil {
			return nil, err
		}
		for _, d := range documents {
			out = append(out, d.items()...)
		}
	}
	return out, nil
}

// maxDocuments bounds a file of documents, in bytes.
const maxDocuments = 64 << 20

// readFile returns what a file holds, and the name under which it is shown. It may be a pipe, as
// shells make them of commands; one that nobody writes to is waited for until the context ends.
func readFile(ctx context.Context, file string, in io.Reader) (data []byte, shown string, err error) {
	shown = file
	if file == stdin {
		shown = stdinShown
	}
	type outcome struct {
		data []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		data, err := readBounded(file, in)
		done <- outcome{data, err}
	}()
	select {
	case o := <-done:
		return o.data, shown, o.err
	case <-ctx.Done():
		return nil, shown, fmt.Errorf("%s: %w", shown, ctx.Err())
	}
}

// readBounded reads a file or the standard input. It errors when there is too much.
func readBounded(file string, in io.Reader) ([]byte, error) {
	if file != stdin {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxDocuments+1))
	if err == nil && len(data) > maxDocuments {
		err = fmt.Errorf("%s: it has more than %d bytes", file, maxDocuments)
	}
	return data, err
}

// separator is a line that begins a document. What follows the dashes on the line
// belongs to the document.
var separator = regexp.MustCompile(`(?m)^---(?:[ \t\r]|$)`)

// split cuts a stream into documents that know their lines.
func split(file, text string) []document {
	text = strings.TrimPrefix(text, "\ufeff")
	var out []document
	start := 0
	for _, at := range append(separator.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		body := text[start:at[0]]
		before := strings.Count(text[:start], "\n")
		out = append(out, document{
			file: file,
			line: before + strings.Count(leading(body), "\n") + 1,
			text: strings.Repeat("\n", before) + body,
		})
		start = at[1]
	}
	return out
}

// decode parses the text: one YAML document, or any number of JSON values in a row,
// as jq prints them.
func (d document) decode() ([]document, error) {
	if !strings.HasPrefix(strings.TrimSpace(d.text), "{") {
		return d.decodeYAML()
	}
	out, err := d.decodeJSON()
	if err != nil && len(out) == 0 {
		return d.decodeYAML() // {a: b} is YAML
	}
	return out, err
}

func (d document) decodeJSON() ([]document, error) {
	decoder := json.NewDecoder(strings.NewReader(d.text))
	var out []document
	for {
		rest := d.text[decoder.InputOffset():]
		start := len(d.text) - len(strings.TrimLeft(rest, " \t\r\n"))
		one := document{file: d.file, line: 1 + strings.Count(d.text[:start], "\n")}
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, program.Faults{{Position: one.at(), Message: "malformed JSON: " + err.Error()}}
		}
		one.text = strings.Repeat("\n", one.line-1) + string(raw)
		values, err := one.unmarshal(raw)
		if err != nil {
			return out, err
		}
		out = append(out, values...)
	}
}

func (d document) decodeYAML() ([]document, error) {
	data, err := yaml.YAMLToJSONStrict([]byte(d.text))
	if err != nil {
		return nil, d.syntaxFault(err)
	}
	// That reads one document and ignores what follows {a: b} or a line of dots.
	decoder := yamlv3.NewDecoder(strings.NewReader(d.text))
	for err == nil {
		err = decoder.Decode(&yamlv3.Node{})
	}
	if !errors.Is(err, io.EOF) {
		return nil, d.syntaxFault(err)
	}
	return d.unmarshal(data)
}

// unmarshal turns one JSON value into a document; null is none.
func (d document) unmarshal(data []byte) ([]document, error) {
	if string(bytes.TrimSpace(data)) == "null" {
		return nil, nil
	}
	// This decoder keeps integers whole; encoding/json makes them floats.
	err := utiljson.Unmarshal(data, &d.object)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		return nil, program.Faults{{Position: d.at(), Message: "a document is a map of fields, not a value of type " + wrongType.Value}}
	case err != nil:
		return nil, program.Faults{{Position: d.at(), Message: err.Error()}}
	}
	return []document{d}, nil
}

// yamlLine is how the YAML parser says where. It has no other way.
var yamlLine = regexp.MustCompile(`(?s)^.*?line (\d+): (.*)$`)

// syntaxFault puts the parser's message into the form of all faults.
func (d document) syntaxFault(err error) error {
	f := program.Fault{Position: d.at(), Message: "malformed YAML: " + oneLine(strings.TrimPrefix(err.Error(), "yaml: "))}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		f.Position.Line, _ = strconv.Atoi(m[1])
		f.Message = "malformed YAML: " + oneLine(m[2])
		if strings.HasPrefix(m[2], "did not find expected") {
			f.Position.Line++ // the parser counts these, and only these, from zero
		}
		f.Position.Line = min(f.Position.Line, 1+strings.Count(strings.TrimSpace(d.text), "\n")+strings.Count(leading(d.text), "\n"))
	}
	if strings.Contains(leading(lineAt(d.text, f.Position.Line)), "\t") {
		f.Hint = "indent with spaces: YAML takes no tabs"
	}
	return program.Faults{f}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// leading returns the blanks that a text begins with.
func leading(text string) string { return text[:len(text)-len(strings.TrimLeft(text, " \t\r\n"))] }

func lineAt(text string, line int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	return lines[line-1]
}

// items returns what a List lists, or the document itself.
func (d document) items() []document {
	kind, _ := d.object["kind"].(string)
	items, isList := d.object["items"].([]any)
	if !isList || !strings.HasSuffix(kind, "List") {
		return []document{d}
	}
	var out []document
	for i, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			continue // a list of something else: nothing that could be meant
		}
		one := document{file: d.file, line: d.lineOf("items", strconv.Itoa(i)), object: object}
		out = append(out, one.items()...)
	}
	return out
}

// name returns metadata.name.
func (d document) name() string {
	meta, _ := d.object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	return name
}

// lineOf returns the line of a field, or of the closest thing around it that is
// there: of a field that is missing, the line of the struct that misses it.
func (d document) lineOf(path ...string) int {
	var root yamlv3.Node
	if yamlv3.Unmarshal([]byte(d.text), &root) != nil || len(root.Content) == 0 {
		return d.line
	}
	line, node := d.line, root.Content[0]
	for _, name := range path {
		key, value := child(node, name)
		if value == nil {
			return line
		}
		line, node = key.Line, value
	}
	return line
}

// child returns the key and the value of a member of a YAML node; an element of a
// list is its own key.
func child(n *yamlv3.Node, name string) (key, value *yamlv3.Node) {
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}

// describe names a document for a person.
func (d document) describe() string {
	apiVersion, _ := d.object["apiVersion"].(string)
	kind, _ := d.object["kind"].(string)
	return fmt.Sprintf("kind %s in %s", orWord(kind, "(none)"), orWord(apiVersion, "(no apiVersion)"))
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}
