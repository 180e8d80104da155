from .audit import AuditResult as AuditResult
from .audit import ReportsAudit as ReportsAudit
from .audit import audit_reports as audit_reports
from .claims import valid_reports as valid_reports
