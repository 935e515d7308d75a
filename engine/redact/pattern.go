package redact

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// waysToWrite returns the ways in which a value may be written.
func waysToWrite(value string) []string {
	if len(value) > maxSplitLength {
		return append(chunks(value), chunks(base64.StdEncoding.EncodeToString([]byte(value)))...)
	}
	all := encodings(value)
	for _, part := range linesAndFields(value) {
		if len(part) >= minSubstringLength {
			all = append(all, part, strings.Trim(strconv.Quote(part), `"`))
		}
	}
	return all
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
	for _, plain := range slices.Compact([]string{value, trimmed}) {
		if strings.ContainsFunc(plain, isQuoted) {
			out = append(out, strings.Trim(strconv.Quote(plain), `"`))
			if text, err := json.Marshal(plain); err == nil {
				out = append(out, strings.Trim(string(text), `"`))
			}
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(plain))
		for _, text := range slices.Compact([]string{encoded, forURLs.Replace(encoded)}) {
			out = append(out, text, strings.TrimRight(text, "="))
		}
		if strings.Contains(plain, "\n") {
			out = append(out, strings.ReplaceAll(plain, "\n", "; "), strings.Join(strings.Fields(plain), " "))
		}
	}
	return out
}

// forURLs makes the base64 of URLs of the usual one.
var forURLs = strings.NewReplacer("+", "-", "/", "_")

// isQuoted reports whether a text with a character may be written in another way between quotation marks.
func isQuoted(c rune) bool {
	return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune("-_.:+@ ", c)
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

// isWordBoundary reports whether the character at an index of a text is not part of a word.
func isWordBoundary(text string, at int) bool {
	if at < 0 || at >= len(text) {
		return true
	}
	c := text[at]
	inWord := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
	return !inWord
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
