package redact

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A pattern is one way in which a value may be written.
type pattern struct {
	text string
	// lower is the text in lower case, or "" if case matters.
	lower string
	// anywhere is true if the text is also redacted within words.
	anywhere bool
}

// patternsOf returns the ways in which a value may be written.
func patternsOf(value string) []pattern {
	var all []string
	if len(value) > maxSplitLength {
		all = append(chunks(value), chunks(base64.StdEncoding.EncodeToString([]byte(value)))...)
	} else {
		all = encodings(value)
		for _, part := range linesAndFields(value) {
			if len(part) >= minSubstringLength {
				all = append(all, part, strings.Trim(strconv.Quote(part), `"`))
			}
		}
	}
	slices.Sort(all)
	var out []pattern
	for _, text := range slices.Compact(all) {
		f := pattern{text: text}
		if len(text) >= minSubstringLength {
			f.lower, f.anywhere = lowerASCII(text), true
		}
		out = append(out, f)
	}
	return out
}

// chunks splits a long value: a text that contains the value contains each of its chunks.
func chunks(value string) []string {
	const size = 4 << 10
	var out []string
	for len(value) > size {
		out, value = append(out, value[:size]), value[size:]
	}
	return append(out, value)
}

// encodings returns a value verbatim, trimmed, in base64, quoted by Go, JSON and CUE, and on one
// line.
func encodings(value string) []string {
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

// linesAndFields returns the lines of a value, and its strings if it is JSON, such as the
// passwords of registries.
func linesAndFields(value string) []string {
	var out []string
	if strings.Contains(value, "\n") {
		for line := range strings.SplitSeq(value, "\n") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	var data any
	if strings.HasPrefix(strings.TrimSpace(value), "{") && json.Unmarshal([]byte(value), &data) == nil {
		out = append(out, stringsIn(data)...)
	}
	return out
}

func stringsIn(data any) []string {
	var out []string
	switch v := data.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = append(out, stringsIn(e)...)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, stringsIn(v[k])...)
		}
	}
	return out
}

// redactText returns a text without the patterns.
func redactText(text string, forms []pattern) string {
	in := lowerASCII(text)
	for _, f := range forms {
		before := text
		if len(f.text) <= len(text) {
			text = f.redactAll(text, in)
		}
		if f.lower != "" && strings.Contains(text, ellipsis) {
			text = f.redactTruncated(text)
		}
		if text != before {
			in = lowerASCII(text)
		}
	}
	return text
}

// redactAll redacts each occurrence of the pattern in a text. inLower is the text in lower case.
func (f pattern) redactAll(text, inLower string) string {
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
		if !f.anywhere && (!isWordBoundary(text, at-1) || !isWordBoundary(text, end)) {
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

// isWordBoundary reports whether the character at an index of a text is not part of a word.
func isWordBoundary(text string, at int) bool {
	if at < 0 || at >= len(text) {
		return true
	}
	c := text[at]
	inWord := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
	return !inWord
}

// ellipsis marks where a text was truncated: in its middle, by package status, or at its end.
const ellipsis = "..."

// minTruncatedLength is the minimum length of a truncated value that is recognised.
const minTruncatedLength = 6

// redactTruncated redacts the remains of the pattern next to each ellipsis of a text.
func (f pattern) redactTruncated(text string) string {
	pieces := strings.Split(text, ellipsis)
	for i, piece := range pieces {
		if i+1 < len(pieces) {
			piece = f.redactAtEnd(piece)
		}
		if i > 0 {
			piece = f.redactAtStart(piece)
		}
		pieces[i] = piece
	}
	return strings.Join(pieces, ellipsis)
}

// redactAtEnd redacts a prefix of the pattern at the end of a piece of text.
func (f pattern) redactAtEnd(piece string) string {
	body := strings.TrimRight(piece, " ")
	for n := min(len(f.text)-1, len(body)); n >= minTruncatedLength; n-- {
		if strings.HasSuffix(body, f.text[:n]) {
			return body[:len(body)-n] + Mask + piece[len(body):]
		}
	}
	return piece
}

// redactAtStart redacts a suffix of the pattern at the start of a piece of text.
func (f pattern) redactAtStart(piece string) string {
	body := strings.TrimLeft(piece, " ")
	for n := min(len(f.text)-1, len(body)); n >= minTruncatedLength; n-- {
		if strings.HasPrefix(body, f.text[len(f.text)-n:]) {
			return piece[:len(piece)-len(body)] + Mask + body[n:]
		}
	}
	return piece
}

// lowerASCII returns a text of the same length with ASCII letters in lower case.
func lowerASCII(text string) string {
	out := []byte(text)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

// commonWords are values that are not redacted: an attacker guesses them first anyway, and
// messages contain them for other reasons.
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
