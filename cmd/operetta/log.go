package main

import (
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
)

// logFlags are the settings of the log of `operetta run`.
type logFlags struct{ format, level string }

// logLevels are the levels of --log-level; the first one is the default.
var logLevels = []string{"info", "debug", "error"}

func (f *logFlags) addFlags(cmd *cobra.Command) {
	choiceFlag(cmd, &f.format, "log", "format of the log", "text", formatJSON)
	choiceFlag(cmd, &f.level, "log-level", "what is logged: info is one line for each thing that happens, debug also each component at each step, error only what a person should look at; "+
		"the annotation operetta.dev/log-level: debug does that for one resource", logLevels...)
}

// open returns the log, in a format for people or in JSON, one line for each event.
func (f logFlags) open(s streams) logr.Logger {
	var level slog.Level
	must(level.UnmarshalText([]byte(f.level))) // the flag has no other values
	if f.format == formatJSON {
		return logr.FromSlogHandler(slog.NewJSONHandler(s.err, &slog.HandlerOptions{Level: slogLevel(level)}))
	}
	return logr.FromSlogHandler(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slogLevel(level), ReplaceAttr: shortenAttr}))
}

// slogLevel returns the level from which on messages are logged: logr's V(n) is the level -n.
func slogLevel(level slog.Level) slog.Level {
	if level == slog.LevelDebug {
		return -1 // V(1); what libraries say at V(4), which slog calls debug, is about themselves
	}
	return level
}

// shortenAttr leaves out what distracts a person from the message: the reconcile id and the date.
func shortenAttr(groups []string, a slog.Attr) slog.Attr {
	if a.Key == "reconcileID" {
		return slog.Attr{} // the id groups the lines of one reconcile, which matters to machines
	}
	if a.Key == slog.TimeKey && len(groups) == 0 {
		return slog.String(slog.TimeKey, a.Value.Time().Format("15:04:05.000"))
	}
	return a
}
