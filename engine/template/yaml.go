package template

import (
	"bytes"
	"regexp"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// yaml returns the YAML of a node as CUE writes it, by the same library.
func (e *Evaluation) yaml(n *Node) (any, error) {
	root, err := e.yamlNode(n)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, ErrFallback
	}
	return b.String(), nil
}

func (e *Evaluation) yamlNode(n *Node) (*yaml.Node, error) {
	var kind yaml.Kind
	switch {
	case n.form == object || n.form == constant && n.keys != nil:
		kind = yaml.MappingNode
	case n.form == list || n.form == constant && n.args != nil:
		kind = yaml.SequenceNode
	default:
		v, err := e.Eval(n)
		if err != nil {
			return nil, err
		}
		return yamlScalar(v)
	}
	out := &yaml.Node{Kind: kind}
	for i, arg := range n.args {
		if kind == yaml.MappingNode {
			key, err := yamlScalar(n.keys[i])
			if err != nil {
				return nil, err
			}
			out.Content = append(out.Content, key)
		}
		value, err := e.yamlNode(arg)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, value)
	}
	return out, nil
}

// yamlScalar returns a scalar as YAML. CUE writes a text of several lines in a form of its own.
func yamlScalar(v any) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.ScalarNode}
	switch v := v.(type) {
	case nil:
		out.Value = "null"
	case bool:
		out.Value = strconv.FormatBool(v)
	case int64:
		out.Value = strconv.FormatInt(v, 10)
	case string:
		if !isOneLine(v) {
			return nil, ErrFallback
		}
		out.SetString(v)
		if isLegacy[v] || likeNumber.MatchString(v) {
			out.Style = yaml.DoubleQuotedStyle
		}
	default:
		return nil, ErrFallback
	}
	return out, nil
}

// isOneLine reports whether a text has no control characters, and is one.
func isOneLine(text string) bool {
	for _, r := range text {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff {
			return false
		}
	}
	return utf8.ValidString(text)
}

// isLegacy has the texts that YAML 1.1 takes for something else, and likeNumber matches those that it may
// take for a date or a number: CUE v0.17.1 quotes these.
var (
	isLegacy = map[string]bool{
		"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "n": true, "N": true, "t": true, "T": true, "f": true, "F": true,
		"no": true, "No": true, "NO": true, "true": true, "True": true, "TRUE": true, "false": true, "False": true, "FALSE": true,
		"on": true, "On": true, "ON": true, "off": true, "Off": true, "OFF": true, ".Nan": true,
	}
	likeNumber = regexp.MustCompile(`^[\-+0-9:\. \t]+([-:]|[tT])[\-+0-9:\. \t]+[zZ]?$|^0x[a-fA-F0-9]+$`)
)
