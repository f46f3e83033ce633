package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// licences writes, beside each program that is named, the texts that go along with what it
// contains, as an image has them in files of its own.
func licences(ctx context.Context, args []string, errOut io.Writer) error {
	flags := flag.NewFlagSet("image licences", flag.ContinueOnError)
	flags.SetOutput(errOut)
	source := flags.String("source", "../..", "`directory` of the module")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no program is named: name files that go build wrote")
	}
	for _, file := range flags.Args() {
		text, err := licencesOf(ctx, *source, file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(strings.TrimSuffix(file, ".exe")+".licences", text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// licencesOf returns the texts for a program, whose package and platform it has from the program.
func licencesOf(ctx context.Context, source, file string) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	of := program{source: source, pkg: info.Path, tags: settings["-tags"], system: settings["GOOS"]}
	modules, err := of.modules(ctx, settings["GOARCH"])
	if err != nil {
		return nil, err
	}
	if err := compare(modules, file); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s contains the modules below, each with its licences and notices.\n", of.base())
	for _, m := range modules {
		if err := m.license(); err != nil {
			return nil, err
		}
		for _, l := range m.licences {
			title := strings.Join(strings.Fields(m.path+" "+m.version+" "+l.name), " ") // the program has no version
			fmt.Fprintf(&text, "\n%s\n%s\n\n%s\n", title, strings.Repeat("=", len(title)), bytes.TrimSpace(l.content))
		}
	}
	return text.Bytes(), nil
}
