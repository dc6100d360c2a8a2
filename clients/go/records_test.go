package clients

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// incidentRecord is what an exported INCIDENT record says.
type incidentRecord struct {
	Key        int64  `json:"key"`
	Intent     string `json:"intent"`
	RecordType string `json:"recordType"`
	ValueType  string `json:"valueType"`
	Value      struct {
		ErrorType          string `json:"errorType"`
		ErrorMessage       string `json:"errorMessage"`
		ElementID          string `json:"elementId"`
		JobKey             int64  `json:"jobKey"`
		ProcessInstanceKey int64  `json:"processInstanceKey"`
	} `json:"value"`
}

// incident waits until an incident of the instance is exported. Incident keys are not visible over gRPC, so they are
// read from the server's exported records; without OSMIA_RECORDS the rest of the test is skipped.
func incident(t *testing.T, processInstanceKey int64) incidentRecord {
	t.Helper()
	file := os.Getenv("OSMIA_RECORDS")
	if file == "" {
		t.Skip("OSMIA_RECORDS is not set: incident keys are unknown")
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if found, ok := findIncident(t, file, processInstanceKey); ok {
			return found
		}
	}
	t.Fatalf("No incident of instance %d was exported.", processInstanceKey)
	return incidentRecord{}
}

func findIncident(t *testing.T, file string, processInstanceKey int64) (incidentRecord, bool) {
	t.Helper()
	records, err := os.Open(file)
	must(t, err)
	defer records.Close()
	lines := bufio.NewScanner(records)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.Contains(line, `"INCIDENT"`) || !strings.Contains(line, strconv.FormatInt(processInstanceKey, 10)) {
			continue
		}
		var record incidentRecord
		// The last line may still be in the middle of being written: it is read the next time.
		if json.Unmarshal([]byte(line), &record) != nil {
			continue
		}
		if record.ValueType == "INCIDENT" && record.RecordType == "EVENT" && record.Intent == "CREATED" &&
			record.Value.ProcessInstanceKey == processInstanceKey {
			return record, true
		}
	}
	must(t, lines.Err())
	return incidentRecord{}, false
}
