package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sort"
	"strconv"
	"time"
)

const (
	pageSize = 1000
	// Findings that are shown.
	shownMax = 20
)

type page struct {
	Items []map[string]any `json:"items"`
	Page  struct {
		EndCursor string `json:"endCursor"`
	} `json:"page"`
}

// search reads all pages.
func search(address, path string, filter map[string]any) ([]map[string]any, error) {
	var all []map[string]any
	cursor := ""
	for {
		limits := map[string]any{"limit": pageSize}
		if cursor != "" {
			limits["after"] = cursor
		}
		body, err := json.Marshal(map[string]any{"filter": filter, "page": limits})
		if err != nil {
			return nil, err
		}
		answer, err := http.Post("http://"+address+path, "application/json", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			return nil, err
		}
		if answer.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("%s%s answers %s: %s", address, path, answer.Status, text)
		}
		var found page
		if err := json.Unmarshal(text, &found); err != nil {
			return nil, err
		}
		all = append(all, found.Items...)
		if len(found.Items) < pageSize {
			return all, nil
		}
		cursor = found.Page.EndCursor
	}
}

// seen is what one node finds.
type seen struct {
	states map[int64]string
	tags   map[int64][]int64
}

func look(address, process string) (*seen, error) {
	found := &seen{states: map[int64]string{}, tags: map[int64][]int64{}}
	instances, err := search(address, "/v2/process-instances/search", map[string]any{"processDefinitionId": process})
	if err != nil {
		return nil, err
	}
	for _, instance := range instances {
		found.states[number(instance["processInstanceKey"])], _ = instance["state"].(string)
	}
	variables, err := search(address, "/v2/variables/search", map[string]any{"name": "tag"})
	if err != nil {
		return nil, err
	}
	for _, variable := range variables {
		instance := number(variable["processInstanceKey"])
		if _, ours := found.states[instance]; ours {
			tag := number(variable["value"])
			found.tags[tag] = append(found.tags[tag], instance)
		}
	}
	return found, nil
}

func number(value any) int64 {
	text, _ := value.(string)
	read, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		fail(fmt.Sprintf("a node answers %v, which is no number", value))
	}
	return read
}

func audit(addresses []string, path string, settle time.Duration) error {
	read, err := readLedger(path)
	if err != nil {
		return err
	}
	if len(read.created) == 0 || len(read.completed) == 0 {
		return fmt.Errorf("the ledger has %d creations and %d completions that were acknowledged", len(read.created), len(read.completed))
	}
	var before []string
	since := time.Now()
	for {
		findings, err := compare(addresses, read)
		if err != nil {
			return err
		}
		if len(findings) == 0 {
			fmt.Printf("foreign client: %d instances and %d completions are as acknowledged at %d nodes\n",
				len(read.created), len(read.completed), len(addresses))
			return nil
		}
		if !reflect.DeepEqual(findings, before) {
			before, since = findings, time.Now()
		}
		if time.Since(since) > settle {
			for _, finding := range findings[:min(len(findings), shownMax)] {
				fmt.Println(finding)
			}
			return fmt.Errorf("the audit has %d findings", len(findings))
		}
		time.Sleep(time.Second)
	}
}

// compare says what is not as it was promised, or not the same at all nodes.
func compare(addresses []string, read *promised) ([]string, error) {
	var findings []string
	wrong := func(format string, parts ...any) { findings = append(findings, fmt.Sprintf(format, parts...)) }
	var first *seen
	for _, address := range addresses {
		found, err := look(address, read.process)
		if err != nil {
			return nil, err
		}
		for tag, instance := range read.created {
			if tagged := found.tags[tag]; len(tagged) != 1 || tagged[0] != instance {
				wrong("lost or doubled: %s has the instances %v of creation %d, which was acknowledged with %d", address, tagged, tag, instance)
			}
		}
		for tag, tagged := range found.tags {
			if !read.intended[tag] || read.refused[tag] {
				wrong("unexpected: %s has the instances %v of creation %d, which was refused or never sent", address, tagged, tag)
			}
			if len(tagged) > 1 {
				wrong("doubled: %s has the instances %v of creation %d", address, tagged, tag)
			}
		}
		for job, instance := range read.completed {
			if found.states[instance] != "COMPLETED" {
				wrong("lost: job %d was completed, and its instance %d is %q at %s", job, instance, found.states[instance], address)
			}
		}
		for instance, state := range found.states {
			if state != "COMPLETED" {
				wrong("stuck: instance %d is %q at %s", instance, state, address)
			}
		}
		if first == nil {
			first = found
		} else if !reflect.DeepEqual(first.states, found.states) {
			wrong("disagreeing: %s has %d instances and %s has %d, or in other states", addresses[0], len(first.states), address, len(found.states))
		}
	}
	sort.Strings(findings)
	return findings, nil
}
