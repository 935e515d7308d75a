package main

import (
	"bytes"
	"cmp"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/redact"
	"sigs.k8s.io/yaml"
)

const (
	// stdin is the file name that stands for the standard input, as in kubectl.
	stdin = "-"
	// stdinName is how errors name the standard input.
	stdinName = "<stdin>"
)

// A document is one YAML or JSON document of a file.
type document struct {
	file string
	line int // of its beginning
	text string
	// above is how many lines of the file are above the text. A text that was padded with them would make a stream
	// of many documents quadratic.
	above int
	// object is the value of the document, in the types of Kubernetes' unstructured objects.
	object map[string]any
}

// position returns the position of the beginning of the document.
func (d document) position() fault.Position { return fault.Position{File: d.file, Line: d.line} }

// readDocuments returns the documents of a file; "-" is the standard input. It leaves out empty
// documents, and replaces a List by its items. It errors if the file cannot be read, is too large or
// malformed, or if the context ends first.
func readDocuments(ctx context.Context, file string, in io.Reader) ([]document, error) {
	data, shown, err := readFile(ctx, file, in)
	if err != nil {
		return nil, err
	}
	var out []document
	for _, part := range splitDocuments(shown, string(data)) {
		documents, err := part.decode()
		if err != nil {
			return nil, err
		}
		for _, d := range documents {
			out = append(out, d.listItems()...)
		}
	}
	return out, nil
}

// maxDocuments bounds a file of documents, in bytes.
const maxDocuments = 64 << 20

// readFile returns the content of a file, and its name for errors. The file may be a named pipe, such
// as a shell makes for <(command). A read from a pipe without a writer blocks and cannot be
// interrupted, so readFile returns when the context ends.
func readFile(ctx context.Context, file string, in io.Reader) (data []byte, shown string, err error) {
	shown = shownName(file)
	data, err = await(ctx, func() ([]byte, error) { return readLimited(file, in) })
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%s: %w", shown, ctx.Err())
	}
	return data, shown, err
}

// shownName returns the name of a file for messages.
func shownName(file string) string {
	if file == stdin {
		return stdinName
	}
	return file
}

// await calls a function that cannot be interrupted. If the context ends first, await returns its
// error, and the function goes on until the process ends.
func await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := call()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// readLimited reads a file or the standard input. It errors beyond maxDocuments bytes.
func readLimited(file string, in io.Reader) ([]byte, error) {
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

// documentSeparator matches the beginning of a line that begins a document. The rest of the line
// belongs to the document.
var documentSeparator = regexp.MustCompile(`(?m)^---(?:[ \t\r]|$)`)

// splitDocuments splits a stream into documents with the lines at which they begin.
func splitDocuments(file, text string) []document {
	text = strings.TrimPrefix(text, "\ufeff")
	var out []document
	start, above := 0, 0
	for _, at := range append(documentSeparator.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		body := text[start:at[0]]
		out = append(out, document{
			file:  file,
			line:  above + strings.Count(leadingSpace(body), "\n") + 1,
			text:  body,
			above: above,
		})
		above += strings.Count(text[start:at[1]], "\n")
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
	end, above := 0, d.above // of the value before
	for {
		start := len(d.text) - len(strings.TrimLeft(d.text[decoder.InputOffset():], " \t\r\n"))
		above += strings.Count(d.text[end:start], "\n")
		end = start
		one := document{file: d.file, line: above + 1, above: above}
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, fault.Faults{{Position: one.position(), Message: "malformed JSON: " + err.Error()}}
		}
		one.text = string(raw)
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
	// YAMLToJSONStrict reads one document and ignores text after {a: b} or after a line of dots.
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
	// This decoder keeps integers; encoding/json makes them floats.
	err := utiljson.Unmarshal(data, &d.object)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		return nil, fault.Faults{{Position: d.position(), Message: "a document is a map of fields, not a value of type " + wrongType.Value}}
	case err != nil:
		return nil, fault.Faults{{Position: d.position(), Message: err.Error()}}
	}
	return []document{d}, nil
}

// yamlLine matches the line number in an error of the YAML parser, which reports it only in the text.
var yamlLine = regexp.MustCompile(`(?s)^.*?line (\d+): (.*)$`)

// syntaxFault returns an error of the YAML parser as a fault with a position.
func (d document) syntaxFault(err error) error {
	f := fault.Fault{Position: d.position(), Message: "malformed YAML: " + redact.OneLine(strings.TrimPrefix(err.Error(), "yaml: "))}
	m := yamlLine.FindStringSubmatch(err.Error())
	hasLine := m != nil
	if hasLine {
		f.Position.Line, _ = strconv.Atoi(m[1])
		f.Message = "malformed YAML: " + redact.OneLine(m[2])
		if strings.HasPrefix(m[2], "did not find expected") {
			f.Position.Line++ // the parser counts the lines of these errors, and only these, from zero
		}
		f.Position.Line = d.above + min(f.Position.Line, 1+strings.Count(strings.TrimSpace(d.text), "\n")+strings.Count(leadingSpace(d.text), "\n"))
	}
	at := templateAction.FindStringIndex(d.text)
	switch {
	case strings.Contains(leadingSpace(lineAt(d.text, f.Position.Line-d.above)), "\t"):
		f.Hint = "indent with spaces: YAML takes no tabs"
	case at != nil:
		if !hasLine { // the parser has read the braces as YAML
			f.Position.Line, f.Message = d.above+1+strings.Count(d.text[:at[1]], "\n"), "malformed YAML: {{ is of a template"
		}
		f.Hint = "if this is a template of a chart, run helm template first and give its output"
	}
	return fault.Faults{f}
}

// templateAction matches the beginning of an action of a template where YAML has a value, a key or an element.
var templateAction = regexp.MustCompile(`(?m)(?:^|:|-)[ \t]*\{\{`)

// leadingSpace returns the white space that a text begins with.
func leadingSpace(text string) string { return text[:len(text)-len(strings.TrimLeft(text, " \t\r\n"))] }

// lineAt returns a line of a text by its number, or nothing if there is no such line.
func lineAt(text string, line int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	return lines[line-1]
}

// listItems returns the items of a List, or the document itself if it is not a List.
func (d document) listItems() []document {
	items, isList := d.object["items"].([]any)
	if !isList || !strings.HasSuffix(d.resource().GetKind(), "List") {
		return []document{d}
	}
	var nodes []*yamlv3.Node
	if _, list := member(d.root(), "items"); list != nil {
		nodes = list.Content
	}
	var out []document
	for i, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			continue // the item is not an object
		}
		one := document{file: d.file, line: d.line, object: object}
		if i < len(nodes) {
			one.line = d.above + nodes[i].Line
		}
		out = append(out, one.listItems()...)
	}
	return out
}

// resource returns the value as an object of Kubernetes.
func (d document) resource() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: d.object}
}

// kind returns the kind as it is written.
func (d document) kind() schema.GroupKind { return d.resource().GroupVersionKind().GroupKind() }

// name returns metadata.name.
func (d document) name() string { return d.resource().GetName() }

// lineOf returns the line of a field. If the field is missing, it returns the line of the closest
// field around it that exists.
func (d document) lineOf(path ...string) int {
	line, node := d.line, d.root()
	for _, name := range path {
		key, value := member(node, name)
		if value == nil {
			return line
		}
		line, node = d.above+key.Line, value
	}
	return line
}

// root returns the YAML node of the document, which has no members if the document is an item of a List.
func (d document) root() *yamlv3.Node {
	var root yamlv3.Node
	if yamlv3.Unmarshal([]byte(d.text), &root) != nil || len(root.Content) == 0 {
		return &yamlv3.Node{}
	}
	return root.Content[0]
}

// member returns the key and the value of a member of a YAML node; an element of a
// list is its own key.
func member(n *yamlv3.Node, name string) (key, value *yamlv3.Node) {
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

// describe returns the kind and apiVersion of a document for a message.
func (d document) describe() string {
	u := d.resource()
	return fmt.Sprintf("kind %s in %s", cmp.Or(u.GetKind(), "(none)"), cmp.Or(u.GetAPIVersion(), "(no apiVersion)"))
}
