package redact

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A form is one way in which a value may be written.
type form struct {
	text string
	// lower is the text in lower case, if its case does not matter.
	lower string
}

// formsOf returns the ways in which a value may be written.
func formsOf(value string) []form {
	var all []string
	if len(value) > longestTaken {
		all = append(chunks(value), chunks(base64.StdEncoding.EncodeToString([]byte(value)))...)
	} else {
		all = written(value)
		for _, part := range partsOf(value) {
			if len(part) >= certain {
				all = append(all, part, strings.Trim(strconv.Quote(part), `"`))
			}
		}
	}
	slices.Sort(all)
	var out []form
	for _, text := range slices.Compact(all) {
		f := form{text: text}
		if len(text) >= certain {
			f.lower = lower(text)
		}
		out = append(out, f)
	}
	return out
}

// chunks returns a long value in pieces: whoever says all of it says each of them.
func chunks(value string) []string {
	const size = 4 << 10
	var out []string
	for len(value) > size {
		out, value = append(out, value[:size]), value[size:]
	}
	return append(out, value)
}

// written returns a value as it is, without the space around it, encoded, and as it is
// quoted by Go, JSON and CUE, and on one line.
func written(value string) []string {
	trimmed := strings.TrimSpace(value)
	out := []string{value, trimmed}
	for _, plain := range []string{value, trimmed} {
		out = append(out, strings.Trim(strconv.Quote(plain), `"`))
		if text, err := json.Marshal(plain); err == nil {
			out = append(out, strings.Trim(string(text), `"`))
		}
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			out = append(out, encoding.EncodeToString([]byte(plain)))
		}
		if strings.Contains(plain, "\n") {
			out = append(out, strings.ReplaceAll(plain, "\n", "; "), strings.Join(strings.Fields(plain), " "))
		}
	}
	return out
}

// partsOf returns the lines of a value, and the texts in it if it is JSON, such as the
// passwords of registries.
func partsOf(value string) []string {
	var out []string
	if strings.Contains(value, "\n") {
		for line := range strings.SplitSeq(value, "\n") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	var data any
	if strings.HasPrefix(strings.TrimSpace(value), "{") && json.Unmarshal([]byte(value), &data) == nil {
		out = append(out, textsIn(data)...)
	}
	return out
}

func textsIn(data any) []string {
	var out []string
	switch v := data.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = append(out, textsIn(e)...)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, textsIn(v[k])...)
		}
	}
	return out
}

// replace returns a text without some forms.
func replace(text string, forms []form) string {
	in := lower(text)
	for _, f := range forms {
		before := text
		if len(f.text) <= len(text) {
			text = f.whole(text, in)
		}
		if f.lower != "" && strings.Contains(text, ellipsis) {
			text = f.cut(text)
		}
		if text != before {
			in = lower(text)
		}
	}
	return text
}

// whole takes the form out of a text, which is given in lower case as well, wherever
// it is.
func (f form) whole(text, inLower string) string {
	in, wanted := text, f.text
	if f.lower != "" {
		in, wanted = inLower, f.lower
	}
	var b strings.Builder
	from := 0
	for {
		at := strings.Index(in[from:], wanted)
		if at < 0 {
			break
		}
		at += from
		end := at + len(wanted)
		if f.lower == "" && (!boundary(text, at-1) || !boundary(text, end)) {
			b.WriteString(text[from : at+1])
			from = at + 1
			continue
		}
		b.WriteString(text[from:at] + Mask)
		from = end
	}
	if from == 0 {
		return text
	}
	return b.String() + text[from:]
}

// boundary reports whether there is no part of a word at a place of a text.
func boundary(text string, at int) bool {
	if at < 0 || at >= len(text) {
		return true
	}
	c := text[at]
	inWord := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
	return !inWord
}

// ellipsis is where a text was cut: its middle, by package status, or its end.
const ellipsis = "..."

// shortestCut is how much of a value is recognised beside a cut.
const shortestCut = 6

// cut takes out what is left of the form beside the places where a text was cut.
func (f form) cut(text string) string {
	pieces := strings.Split(text, ellipsis)
	for i, piece := range pieces {
		if i+1 < len(pieces) {
			piece = f.cutAtEnd(piece)
		}
		if i > 0 {
			piece = f.cutAtStart(piece)
		}
		pieces[i] = piece
	}
	return strings.Join(pieces, ellipsis)
}

// cutAtEnd takes out how the form begins, if a piece of a text ends with that.
func (f form) cutAtEnd(piece string) string {
	body := strings.TrimRight(piece, " ")
	for n := min(len(f.text)-1, len(body)); n >= shortestCut; n-- {
		if strings.HasSuffix(body, f.text[:n]) {
			return body[:len(body)-n] + Mask + piece[len(body):]
		}
	}
	return piece
}

// cutAtStart takes out how the form ends, if a piece of a text begins with that.
func (f form) cutAtStart(piece string) string {
	body := strings.TrimLeft(piece, " ")
	for n := min(len(f.text)-1, len(body)); n >= shortestCut; n-- {
		if strings.HasPrefix(body, f.text[len(f.text)-n:]) {
			return piece[:len(piece)-len(body)] + Mask + body[n:]
		}
	}
	return piece
}

// lower returns a text with the letters of ASCII in lower case, of the same length.
func lower(text string) string {
	out := []byte(text)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

// commonWords are values that are not taken out: whoever guesses tries them first, and
// messages have them for other reasons.
var commonWords = wordsIn(`
true false null none yes off enabled disabled enable disable default
admin administrator root user username login password passwd secret secrets token credentials
name host hostname port database dbname data value key test tests example prod production staging development debug info warn error
latest stable main master primary replica standby leader follower public private local localhost
postgres postgresql mysql mariadb redis mongodb mongo kafka rabbitmq sqlite nginx minio
http https grpc amqp plain basic bearer oauth opaque require required prefer allow verify-ca verify-full
kubernetes cluster service namespace component components object objects config inputs input live spec status metadata
ready reconciling stalled paused created waiting failed deleting scaling verified applied retrying excluded held progressing
deployment statefulset daemonset configmap secret service ingress namespace job cronjob pod node
waiting wanted shown there exist exists does from with that this been
`)

func wordsIn(text string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		out[word] = true
	}
	return out
}
